#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <random>

#include "tests/memory/residency_simulation.hpp"
#include "tests/support/seeds.hpp"

namespace heddle::simulation {
namespace {

using protocol::AccessMode;
using Uses = ResidencySimulation::Uses;
using Sizes = Residency::BlockSizes;

constexpr std::size_t block_units = 5;

/// Requests of up to `uses_max` blocks in a pool of exactly minimum_bytes, while `others` blocks
/// are taken one by one and held to the end, wherever they happen to be.
class SmallestPool {
 public:
  SmallestPool(std::uint64_t seed, Sizes sizes)
      : random_(seed),
        uses_max_(1 + random_() % 4),
        others_(random_() % 4),
        simulation_({.bytes = Residency::minimum_bytes(block_units * unit_bytes, uses_max_, others_,
                                                       sizes, unit_bytes),
                     .alignment = unit_bytes,
                     .dirty_share_max = static_cast<double>(random_() % 3) / 2,
                     .early_writes = static_cast<std::int32_t>(random_() % 3),
                     .overtakes_max = static_cast<std::int32_t>(random_() % 5)}) {
    for (std::size_t i = 0; i < uses_max_ * 4 + others_; ++i) {
      const std::size_t units = sizes == Sizes::equal ? block_units : 1 + random_() % block_units;
      blocks_.push_back(simulation_.add(units * unit_bytes));
    }
  }

  void run() {
    std::size_t held = 0;
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 6; ++i) simulation_.request(random_uses(1 + random_() % uses_max_));
      for (int i = 0; i < 3; ++i) (void)simulation_.try_acquire(random_uses(1));
      if (!simulation_.drain(random_, held)) return;
      while (simulation_.running() > held) simulation_.finish_task(held);
      if (held < others_) hold_one(held);
    }
  }

  [[nodiscard]] const std::string& failure() const { return simulation_.failure(); }

 private:
  Uses random_uses(std::size_t count) {
    Uses uses;
    for (std::size_t i = 0; i < count; ++i) {
      constexpr AccessMode modes[] = {AccessMode::read, AccessMode::write, AccessMode::read_write};
      const Residency::Use use{blocks_[random_() % blocks_.size()], modes[random_() % 3]};
      bool known = false;
      for (const auto& u : uses) known = known || u.block == use.block;
      if (!known && simulation_.may_use({use})) uses.push_back(use);
    }
    return uses;
  }

  /// One task of one block runs to the end of the test.
  void hold_one(std::size_t& held) {
    const Uses uses = random_uses(1);
    if (uses.empty()) return;
    simulation_.request(uses);
    if (simulation_.drain(random_, held) && simulation_.running() == held + 1) ++held;
  }

  std::mt19937_64 random_;
  std::size_t uses_max_;
  std::size_t others_;
  ResidencySimulation simulation_;
  std::vector<ResidentBlock> blocks_;
};

}  // namespace

TEST(ResidencyProgress, of_blocks_of_one_size_is_certain_in_the_minimum) {
  for (const std::uint64_t seed : seeds(2000)) {
    SmallestPool pool(seed, Sizes::equal);
    pool.run();
    ASSERT_EQ(pool.failure(), "") << replay_hint(seed);
  }
}

TEST(ResidencyProgress, of_blocks_of_mixed_sizes_is_certain_in_the_minimum) {
  for (const std::uint64_t seed : seeds(2000)) {
    SmallestPool pool(seed, Sizes::mixed);
    pool.run();
    ASSERT_EQ(pool.failure(), "") << replay_hint(seed);
  }
}

TEST(ResidencyProgress, of_the_oldest_request_takes_a_bounded_number_of_events) {
  // An adversary runs whatever is at hand, as long as it is let, and requests more all the time.
  // Transfers end in their order, tasks sooner or later.
  constexpr std::size_t overtakes_max = 8;
  constexpr std::size_t blocks = 24;
  constexpr std::size_t frames = 8;
  std::size_t longest = 0;
  for (const std::uint64_t seed : seeds(500)) {
    std::mt19937_64 random(seed);
    ResidencySimulation s({.bytes = frames * block_units * unit_bytes,
                           .alignment = unit_bytes,
                           .overtakes_max = std::int32_t{overtakes_max}});
    std::vector<ResidentBlock> all;
    for (std::size_t i = 0; i < blocks; ++i) all.push_back(s.add(block_units * unit_bytes));
    Residency::TicketId oldest{0};
    std::size_t events = 0;
    for (int step = 0; step < 600; ++step) {
      const auto any = [&] { return all[random() % all.size()]; };
      const Uses wish{{any(), AccessMode::read_write}};
      const Uses first{{any(), AccessMode::write}};
      if (s.may_use(wish) && s.waiting() < 6) s.request(wish);
      if (s.may_use(first) && s.waiting() < 6) s.request(first);
      for (const ResidentBlock block : all) {
        const Uses at_hand{{block, AccessMode::read}};
        if (s.may_use(at_hand) && s.try_acquire(at_hand)) ++events;
      }
      if (s.transfers() > 0) s.finish_transfer(0);
      if (s.running() > 0) s.finish_task(random() % 2 == 0 ? 0 : random() % s.running());
      events += 2;
      ASSERT_EQ(s.failure(), "") << replay_hint(seed);
      if (s.waiting() == 0 || s.oldest() != oldest) events = 0;
      if (s.waiting() > 0) oldest = s.oldest();
      longest = std::max(longest, events);
      // Before it: at most the frames' transfers and tasks, and those that overtake.
      ASSERT_LE(events, 4 * (2 * frames + 2 * overtakes_max)) << replay_hint(seed);
    }
  }
  EXPECT_GT(longest, 4U);
}

namespace {

/// The tasks of the left-looking tile Cholesky factorization of N x N tiles, in program order, as
/// uses of the tiles of the lower triangle.
class LeftLooking {
 public:
  LeftLooking(std::size_t n, ResidencySimulation& simulation) : n_(n) {
    for (std::size_t i = 0; i < n * (n + 1) / 2; ++i) {
      tiles_.push_back(simulation.add(block_units * unit_bytes));
    }
  }
  [[nodiscard]] std::vector<Uses> filling() const {
    std::vector<Uses> tasks;
    for (const ResidentBlock t : tiles_) tasks.push_back({{t, AccessMode::write}});
    return tasks;
  }
  [[nodiscard]] std::vector<Uses> factorization() const {
    std::vector<Uses> tasks;
    for (std::size_t k = 0; k < n_; ++k) {
      for (std::size_t j = 0; j < k; ++j) tasks.push_back({update(k, k), read(k, j)});
      tasks.push_back({update(k, k)});
      for (std::size_t i = k + 1; i < n_; ++i) {
        for (std::size_t j = 0; j < k; ++j) {
          tasks.push_back({update(i, k), read(i, j), read(k, j)});
        }
        tasks.push_back({update(i, k), read(k, k)});
      }
    }
    return tasks;
  }

 private:
  [[nodiscard]] ResidentBlock tile(std::size_t i, std::size_t j) const {
    return tiles_[i * (i + 1) / 2 + j];
  }
  [[nodiscard]] Residency::Use read(std::size_t i, std::size_t j) const {
    return {tile(i, j), AccessMode::read};
  }
  [[nodiscard]] Residency::Use update(std::size_t i, std::size_t j) const {
    return {tile(i, j), AccessMode::read_write};
  }

  std::size_t n_;
  std::vector<ResidentBlock> tiles_;
};

/// Runs tasks in order, a few ahead as far as earlier ones allow; transfers and tasks end in their
/// order.
void run_in_order(ResidencySimulation& s, const std::vector<Uses>& tasks) {
  constexpr std::size_t ahead = 6;
  for (const Uses& uses : tasks) {
    while (!s.may_use(uses) || s.waiting() + s.running() >= ahead) {
      ASSERT_GT(s.transfers() + s.running(), 0U);
      if (s.transfers() > 0) s.finish_transfer(0);
      if (s.running() > 0) s.finish_task(0);
      ASSERT_EQ(s.failure(), "");
    }
    if (!s.try_acquire(uses)) s.request(uses);
  }
  while (s.waiting() + s.running() + s.transfers() > 0) {
    ASSERT_GT(s.transfers() + s.running(), 0U);
    if (s.transfers() > 0) s.finish_transfer(0);
    if (s.running() > 0) s.finish_task(0);
    ASSERT_EQ(s.failure(), "");
  }
}

}  // namespace

TEST(ResidencyModel, of_left_looking_cholesky_fetches_less_than_a_tile_per_task) {
  constexpr std::size_t n = 16;
  constexpr std::size_t tiles = n * (n + 1) / 2;
  constexpr std::uint64_t tile_bytes = block_units * unit_bytes;
  for (const std::size_t frames : {tiles / 4, tiles / 2, tiles}) {
    ResidencySimulation s({.bytes = frames * tile_bytes, .alignment = unit_bytes});
    const LeftLooking cholesky(n, s);
    run_in_order(s, cholesky.filling());
    const Residency::Statistics filled = s.residency().statistics();
    const std::vector<Uses> tasks = cholesky.factorization();
    run_in_order(s, tasks);
    const Residency::Statistics done = s.residency().statistics();
    const double fetched = static_cast<double>(done.fetched_bytes - filled.fetched_bytes) /
                           static_cast<double>(tile_bytes * tasks.size());
    const double written = static_cast<double>(done.written_bytes - filled.written_bytes) /
                           static_cast<double>(tile_bytes * tasks.size());
    std::printf(
        "left-looking Cholesky, %zu x %zu tiles, %zu tasks, %3zu of %zu tiles resident: "
        "%.3f tiles fetched and %.3f written back per task\n",
        n, n, tasks.size(), frames, tiles, fetched, written);
    // In columns of tiles, the row of the diagonal tile stays; one tile of each product is new.
    EXPECT_LT(fetched, 1.0);
    EXPECT_LT(written, 0.25);
    if (frames == tiles) {
      EXPECT_EQ(done.fetches + done.write_backs, 0);
    }
  }
}

}  // namespace heddle::simulation
