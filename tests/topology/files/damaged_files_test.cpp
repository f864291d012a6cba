#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <string>

#include "base/error.hpp"
#include "node-runtime/topology/files/topology_file.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::test {
namespace {

/// Reads `text`; whatever it is, the result is a valid topology or an Error(usage).
void expect_taken_or_refused(const std::string& text) {
  try {
    EXPECT_TRUE(topology_from_yaml(text, "t.yaml").is_valid());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
  }
}

TEST(DamagedTopologyFiles, are_taken_or_refused_and_never_crash) {
  const std::vector<std::string_view> names = shipped_topologies();
  for (const std::uint64_t seed : simulation::seeds(400)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t count) {
      return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
    };
    std::ifstream file(HEDDLE_CONFIG_FOLDER "/topologies/" +
                       std::string(names[below(names.size())]) + ".yaml");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (below(4) == 0) text.resize(below(text.size()));
    constexpr std::string_view bytes = "[]{}:,-&*!?|>'\"#%@ \n0129gmsb.\t\0\xff";
    for (std::size_t damages = 1 + below(6); damages > 0 && !text.empty(); --damages) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = bytes[below(bytes.size())];
          break;
        case 1:
          text.erase(at, 1 + below(20));
          break;
        case 2:
          text.insert(at, 1, bytes[below(bytes.size())]);
          break;
        default:
          text.insert(at, text.substr(below(text.size()), 1 + below(40)));
          break;
      }
    }
    expect_taken_or_refused(text);
  }
}

}  // namespace
}  // namespace heddle::test
