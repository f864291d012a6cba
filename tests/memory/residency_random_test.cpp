#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "tests/memory/residency_simulation.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::simulation {
namespace {

using protocol::AccessMode;
using Uses = ResidencySimulation::Uses;

constexpr std::uint64_t unit = 64;
constexpr std::uint64_t units_max = 8;  ///< of a block
constexpr AccessMode modes[] = {AccessMode::read, AccessMode::read, AccessMode::write,
                                AccessMode::read_write};

/// How tight the pool is.
enum class Pool { minimum, tight, wide, in_core };

/// Blocks, a pool and everything that may happen to them, chosen by a seed.
class RandomResidency {
 public:
  RandomResidency(std::uint64_t seed, Pool pool)
      : random_(seed),
        sizes_(below(2) == 0 ? Residency::BlockSizes::equal : Residency::BlockSizes::mixed),
        block_units_(1 + below(units_max)),
        uses_max_(1 + below(5)),
        block_count_(uses_max_ + 2 + below(20)),
        simulation_(options(pool)) {
    for (std::size_t i = 0; i < block_count_; ++i)
      blocks_.push_back(simulation_.add(block_bytes()));
  }

  void run(int steps) {
    for (int i = 0; i < steps && simulation_.failure().empty(); ++i) step();
    simulation_.drain(random_);
    while (simulation_.running() > 0) simulation_.finish_task(0);
    while (simulation_.transfers() > 0) simulation_.finish_transfer(0);
  }

  [[nodiscard]] ResidencySimulation& simulation() { return simulation_; }

  /// Everything that was written can still be read at the end.
  void read_all() {
    for (const ResidentBlock block : blocks_) {
      if (simulation_.has_content(block)) simulation_.request({{block, AccessMode::read}});
      simulation_.drain(random_);
      while (simulation_.running() > 0) simulation_.finish_task(0);
    }
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  std::uint64_t block_bytes() {
    const std::size_t units =
        sizes_ == Residency::BlockSizes::equal ? block_units_ : 1 + below(block_units_);
    return units * unit - below(unit / 2);
  }

  Residency::Options options(Pool pool) {
    Residency::Options o;
    o.alignment = unit;
    o.early_writes = static_cast<std::int32_t>(below(4));
    o.dirty_share_max = static_cast<double>(below(5)) / 4;
    o.overtakes_max = static_cast<std::int32_t>(below(8));
    const std::uint64_t largest = block_units_ * unit;
    o.bytes = Residency::minimum_bytes(largest, uses_max_, 0, sizes_, unit);
    if (pool == Pool::tight) o.bytes += below(3 * uses_max_) * unit;
    if (pool == Pool::wide) o.bytes += below(block_count_ * block_units_) * unit;
    // Mixed sizes in the gaps that blocks of the past left may need more than their sum.
    if (pool == Pool::in_core) o.bytes = 2 * block_count_ * largest;
    return o;
  }

  Uses random_uses() {
    Uses uses;
    const std::size_t count = 1 + below(uses_max_);
    for (std::size_t i = 0; i < count; ++i) {
      const Residency::Use use{blocks_[below(blocks_.size())], modes[below(4)]};
      const bool known = std::any_of(uses.begin(), uses.end(),
                                     [&](const auto& u) { return u.block == use.block; });
      if (!known && simulation_.may_use({use})) uses.push_back(use);
    }
    return uses;
  }

  void retire(bool remove) {
    ResidentBlock& block = blocks_[below(blocks_.size())];
    if (!simulation_.is_idle(block)) return;
    simulation_.discard(block);
    if (!remove || simulation_.residency().is_in_transfer(block)) return;
    simulation_.remove(block);
    block = simulation_.add(block_bytes());
  }

  void step() {
    const std::size_t choice = below(20);
    if (choice < 5) {
      simulation_.request(random_uses());
    } else if (choice < 8) {
      simulation_.try_acquire(random_uses());
    } else if (choice < 13) {
      if (simulation_.running() > 0) simulation_.finish_task(below(simulation_.running()));
    } else if (choice < 18) {
      if (simulation_.transfers() > 0) simulation_.finish_transfer(below(simulation_.transfers()));
    } else if (choice == 18) {
      retire(below(2) == 0);
    } else if (simulation_.waiting() > 0 && below(3) == 0) {
      simulation_.cancel(below(simulation_.waiting()));
    }
  }

  std::mt19937_64 random_;
  Residency::BlockSizes sizes_;
  std::size_t block_units_;
  std::size_t uses_max_;
  std::size_t block_count_;
  ResidencySimulation simulation_;
  std::vector<ResidentBlock> blocks_;
};

void run_seeds(Pool pool, std::uint64_t count) {
  Residency::Statistics sum;
  for (const std::uint64_t seed : seeds(count)) {
    RandomResidency random(seed, pool);
    random.run(400);
    random.read_all();
    ASSERT_EQ(random.simulation().failure(), "") << replay_hint(seed);
    sum.fetches += random.simulation().residency().statistics().fetches;
    sum.write_backs += random.simulation().residency().statistics().write_backs;
    sum.evictions += random.simulation().residency().statistics().evictions;
  }
  if (pool == Pool::in_core) {
    EXPECT_EQ(sum.fetches + sum.write_backs + sum.evictions, 0);
  } else if (!one_seed_only()) {
    EXPECT_GT(sum.fetches, 0);  // else nothing was tried
    EXPECT_GT(sum.write_backs, sum.fetches / 10);
  }
}

}  // namespace

TEST(ResidencyRandom, tasks_see_what_was_written_in_the_smallest_pool_and_all_get_their_turn) {
  run_seeds(Pool::minimum, 3000);
}

TEST(ResidencyRandom, tasks_see_what_was_written_in_a_tight_pool) {
  run_seeds(Pool::tight, 2000);
}

TEST(ResidencyRandom, tasks_see_what_was_written_in_a_wide_pool) {
  run_seeds(Pool::wide, 2000);
}

TEST(ResidencyRandom, nothing_moves_while_everything_fits) {
  run_seeds(Pool::in_core, 500);
}

}  // namespace heddle::simulation
