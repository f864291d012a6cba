#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace heddle::simulation {

/// True when HEDDLE_SEED names the one seed to run (`scripts/test --seed N`).
inline bool one_seed_only() {
  return std::getenv("HEDDLE_SEED") != nullptr;
}

/// The seeds a random test runs: 1 .. count, or the one that HEDDLE_SEED names.
inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* text = std::getenv("HEDDLE_SEED")) return {std::strtoull(text, nullptr, 10)};
  std::vector<std::uint64_t> all;
  for (std::uint64_t s = 1; s <= count; ++s) all.push_back(s);
  return all;
}

inline std::string replay_hint(std::uint64_t seed, const std::string& test) {
  return "seed " + std::to_string(seed) + "; repeat with HEDDLE_SEED=" + std::to_string(seed) +
         " build/release/bin/test_protocol --gtest_filter='" + test + "'";
}

}  // namespace heddle::simulation
