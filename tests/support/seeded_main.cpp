#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>

/// GoogleTest's main, and `--seed N`: run the random tests with this one seed (seeds.hpp).

namespace {

constexpr int usage_error = 2;

/// `--seed N` or `--seed=N` at `argv[i]`, which is moved past what was taken.
std::optional<std::string> seed_argument(int argc, char** argv, int& i) {
  const std::string_view argument = argv[i];
  if (argument.starts_with("--seed=")) return std::string(argument.substr(7));
  if (argument != "--seed") return std::nullopt;
  return ++i < argc ? std::string(argv[i]) : std::string();
}

bool is_whole_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // takes its own arguments out
  for (int i = 1; i < argc; ++i) {
    const std::optional<std::string> seed = seed_argument(argc, argv, i);
    if (!seed.has_value()) {
      std::fprintf(stderr, "%s: unknown argument; known: --seed N and GoogleTest's own (--help)\n",
                   argv[i]);
      return usage_error;
    }
    if (!is_whole_number(*seed)) {
      std::fprintf(stderr, "--seed needs a whole number, not '%s'\n", seed->c_str());
      return usage_error;
    }
    setenv("HEDDLE_SEED", seed->c_str(), 1);
  }
  return RUN_ALL_TESTS();
}
