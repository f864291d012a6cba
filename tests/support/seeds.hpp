#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Seeds of random tests. A failure prints its seed in a command that repeats it.
namespace heddle::simulation {

/// True when one seed is to be repeated: HEDDLE_SEED, which `test_protocol --seed N` and
/// `scripts/test --seed N` set.
[[nodiscard]] bool one_seed_only();

/// The seeds a random test runs: 1 .. count, or the one that HEDDLE_SEED names. Under sanitizers,
/// which slow the tests down tenfold, an eighth of them; HEDDLE_SEEDS_PERCENT scales the count
/// further, for a quick look (1) or a night's run (10000).
[[nodiscard]] std::vector<std::uint64_t> seeds(std::uint64_t count);

/// The one command that repeats `seed` in the test that runs now.
[[nodiscard]] std::string replay_hint(std::uint64_t seed);

}  // namespace heddle::simulation
