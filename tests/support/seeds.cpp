#include "tests/support/seeds.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <gtest/gtest.h>

namespace heddle::simulation {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t sanitizer_divisor = 8;
#else
constexpr std::uint64_t sanitizer_divisor = 1;
#endif

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

bool one_seed_only() {
  return std::getenv("HEDDLE_SEED") != nullptr;
}

std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (one_seed_only()) return {number_in("HEDDLE_SEED", 0)};
  const std::uint64_t percent = number_in("HEDDLE_SEEDS_PERCENT", 100);
  std::vector<std::uint64_t> all(
      std::max<std::uint64_t>(1, count * percent / 100 / sanitizer_divisor));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i + 1;
  return all;
}

std::string replay_hint(std::uint64_t seed) {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) program = "test_protocol";
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format("seed {}; repeat with\n  {} --seed {} --gtest_filter='{}.{}'", seed,
                     program.string(), seed, test == nullptr ? "*" : test->test_suite_name(),
                     test == nullptr ? "*" : test->name());
}

}  // namespace heddle::simulation
