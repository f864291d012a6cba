#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "tests/memory/residency_simulation.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::simulation {
namespace {

using protocol::AccessMode;
using Uses = ResidencySimulation::Uses;

constexpr std::uint64_t units_max = 8;  ///< of a block
constexpr AccessMode modes[] = {AccessMode::read, AccessMode::read, AccessMode::write,
                                AccessMode::read_write};

/// How tight the pool is.
enum class Pool { minimum, tight, wide, in_core };

/// Who uses the blocks.
enum class Users { device, device_and_host };

/// Blocks, a pool and everything that may happen to them, chosen by a seed.
class RandomResidency {
 public:
  RandomResidency(std::uint64_t seed, Pool pool, Users users)
      : random_(seed),
        users_(users),
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
    while (simulation_.running_on_host() > 0) simulation_.finish_host_task(0);
    while (simulation_.transfers() > 0) simulation_.finish_transfer(0);
  }

  [[nodiscard]] ResidencySimulation& simulation() { return simulation_; }

  /// Everything that was written can still be read at the end.
  void read_all() {
    for (const ResidentBlock block : blocks_) {
      if (simulation_.has_content(block)) simulation_.request({{block, AccessMode::read}});
      simulation_.drain(random_);
      while (simulation_.running() > 0) simulation_.finish_task(0);
      if (users_ == Users::device || !simulation_.has_content(block)) continue;
      simulation_.request_host({{block, AccessMode::read}});
      simulation_.drain(random_);
      while (simulation_.running_on_host() > 0) simulation_.finish_host_task(0);
    }
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  std::uint64_t block_bytes() {
    const std::size_t units =
        sizes_ == Residency::BlockSizes::equal ? block_units_ : 1 + below(block_units_);
    return units * unit_bytes - below(unit_bytes / 2);
  }

  Residency::Options options(Pool pool) {
    Residency::Options o;
    o.alignment = unit_bytes;
    o.early_writes = static_cast<std::int32_t>(below(4));
    o.dirty_share_max = static_cast<double>(below(5)) / 4;
    o.overtakes_max = static_cast<std::int32_t>(below(8));
    const std::uint64_t largest = block_units_ * unit_bytes;
    o.bytes = Residency::minimum_bytes(largest, uses_max_, 0, sizes_, unit_bytes);
    if (pool == Pool::tight) o.bytes += below(3 * uses_max_) * unit_bytes;
    if (pool == Pool::wide) o.bytes += below(block_count_ * block_units_) * unit_bytes;
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
    const std::size_t choice = below(users_ == Users::device ? 20 : 27);
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
    } else if (choice == 19) {
      if (simulation_.waiting() == 0 || below(3) != 0) return;
      simulation_.cancel(below(simulation_.waiting()));
    } else if (choice < 23) {
      simulation_.request_host(random_uses());
    } else if (simulation_.running_on_host() > 0) {
      simulation_.finish_host_task(below(simulation_.running_on_host()));
    }
  }

  std::mt19937_64 random_;
  Users users_;
  Residency::BlockSizes sizes_;
  std::size_t block_units_;
  std::size_t uses_max_;
  std::size_t block_count_;
  ResidencySimulation simulation_;
  std::vector<ResidentBlock> blocks_;
};

/// In every other seed the host uses the blocks too.
Users users_of(std::uint64_t seed) {
  return seed % 2 == 0 ? Users::device : Users::device_and_host;
}

void run_seeds(Pool pool, std::uint64_t count) {
  Residency::Statistics sum;
  for (const std::uint64_t seed : seeds(count)) {
    RandomResidency random(seed, pool, users_of(seed));
    random.run(400);
    random.read_all();
    ASSERT_EQ(random.simulation().failure(), "") << replay_hint(seed);
    sum.fetches += random.simulation().residency().statistics().fetches;
    sum.write_backs += random.simulation().residency().statistics().write_backs;
  }
  if (!one_seed_only()) {
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

TEST(ResidencyRandom, nothing_moves_while_everything_fits_but_what_the_host_uses) {
  std::int64_t moved = 0;
  const auto all = seeds(500);
  for (const std::uint64_t seed : all) {
    RandomResidency random(seed, Pool::in_core, users_of(seed));
    random.run(400);
    random.read_all();
    const ResidencySimulation& s = random.simulation();
    ASSERT_EQ(s.failure(), "") << replay_hint(seed);
    const Residency::Statistics statistics = random.simulation().residency().statistics();
    EXPECT_EQ(statistics.evictions, 0) << replay_hint(seed);
    EXPECT_EQ(statistics.write_backs, s.host_write_backs()) << replay_hint(seed);
    EXPECT_LE(statistics.fetches, s.host_fetches_max()) << replay_hint(seed);
    if (users_of(seed) == Users::device) {
      EXPECT_EQ(statistics.fetches + statistics.write_backs, 0) << replay_hint(seed);
    }
    moved += statistics.write_backs;
  }
  if (!one_seed_only()) {
    EXPECT_GT(moved, std::ssize(all));
  }
}

}  // namespace heddle::simulation
