#include "node-runtime/residency/resident_blocks.hpp"

#include <gtest/gtest.h>
#include <random>
#include <utility>
#include <vector>

#include "node-runtime/residency/block_frames.hpp"
#include "tests/support/seeds.hpp"

/// States of blocks and their frames, without requests.
namespace heddle {
namespace {

using protocol::AccessMode;
using simulation::replay_hint;

constexpr std::size_t unit = 256;

class ResidentBlocksTest : public ::testing::Test {
 protected:
  /// Writes a block that nobody uses.
  void write(ResidentBlock block) {
    const ResidencyUse use{block, AccessMode::write};
    blocks_.hold(use);
    ASSERT_TRUE(blocks_.at(block).extent != FrameSpace::none ||
                frames_.provide_space(block, actions_));
    finish_write_backs();
    blocks_.release(use);
  }
  void finish_write_backs() {
    for (const auto& t : std::exchange(actions_.write_backs, {})) {
      frames_.write_back_finished(t.block, actions_);
      EXPECT_TRUE(blocks_.is_valid());
    }
  }

  ResidentBlocks blocks_{4 * unit, unit};
  BlockFrames frames_{blocks_};
  ResidencyActions actions_;
};

}  // namespace

TEST_F(ResidentBlocksTest, a_new_block_has_neither_content_nor_frame) {
  const ResidentBlock block = blocks_.add(100);
  EXPECT_EQ(blocks_.at(block).content, BlockContent::invalid);
  EXPECT_EQ(blocks_.at(block).extent, FrameSpace::none);
  EXPECT_EQ(blocks_.at(block).frame_bytes, unit);
  EXPECT_EQ(blocks_.largest_bytes(), 100U);
  EXPECT_TRUE(blocks_.is_valid());
}

TEST_F(ResidentBlocksTest, a_written_block_is_modified_until_it_has_been_written_back) {
  const ResidentBlock block = blocks_.add(unit);
  write(block);
  EXPECT_EQ(blocks_.at(block).content, BlockContent::modified);
  EXPECT_EQ(blocks_.totals().dirty_bytes, unit);
  blocks_.start_write_back(block, 3, actions_);
  EXPECT_EQ(blocks_.totals().writing_bytes, unit);
  EXPECT_FALSE(blocks_.is_usable(blocks_.at(block), AccessMode::write));
  EXPECT_TRUE(blocks_.is_usable(blocks_.at(block), AccessMode::read));
  EXPECT_TRUE(blocks_.is_valid());
  EXPECT_EQ(blocks_.write_back_finished(block), no_block) << "no other block waits for its frame";
  EXPECT_EQ(blocks_.at(block).content, BlockContent::shared);
  EXPECT_EQ(blocks_.totals(), (ResidentBlocks::Totals{.resident_bytes = unit}));
  blocks_.take_frame(block);
  EXPECT_EQ(blocks_.at(block).content, BlockContent::backed);
  EXPECT_EQ(blocks_.statistics().evictions, 1);
  EXPECT_TRUE(blocks_.is_valid());
}

TEST_F(ResidentBlocksTest, a_block_waits_for_the_write_back_of_the_frame_that_it_claims) {
  std::vector<ResidentBlock> old;
  for (int i = 0; i < 4; ++i) {
    old.push_back(blocks_.add(unit));
    write(old.back());
  }
  const ResidentBlock block = blocks_.add(unit);
  blocks_.hold({block, AccessMode::write});
  ASSERT_TRUE(frames_.provide_space(block, actions_));
  ASSERT_EQ(actions_.write_backs.size(), 1U);
  EXPECT_EQ(actions_.write_backs[0].block, old[0]) << "the least recently used";
  EXPECT_EQ(blocks_.at(block).extent, FrameSpace::none);
  EXPECT_TRUE(blocks_.is_claimed(blocks_.at(old[0])));
  EXPECT_TRUE(blocks_.is_valid());
  finish_write_backs();
  EXPECT_NE(blocks_.at(block).extent, FrameSpace::none);
  EXPECT_EQ(blocks_.at(old[0]).content, BlockContent::backed);
}

TEST_F(ResidentBlocksTest, a_block_that_the_host_writes_is_left_to_it_without_a_frame) {
  const ResidentBlock block = blocks_.add(unit);
  write(block);
  const ResidencyUse use{block, AccessMode::read_write};
  blocks_.prepare_on_host(use, actions_);
  EXPECT_FALSE(blocks_.at(block).is_usable_on_host(use.mode)) << "it is being written back";
  finish_write_backs();
  ASSERT_TRUE(blocks_.at(block).is_usable_on_host(use.mode));
  blocks_.hold_on_host(use);
  EXPECT_EQ(blocks_.at(block).extent, FrameSpace::none);
  EXPECT_EQ(blocks_.totals(), (ResidentBlocks::Totals{.backed = 1, .left = 1}));
  EXPECT_TRUE(blocks_.is_valid());
  blocks_.release_on_host(use);
  EXPECT_TRUE(blocks_.is_valid());
}

TEST_F(ResidentBlocksTest, unused_frames_are_given_to_all_uses_or_to_none) {
  const std::vector<ResidentBlock> wanted{blocks_.add(unit), blocks_.add(4 * unit)};
  std::vector<ResidencyUse> uses;
  for (const ResidentBlock block : wanted) {
    uses.push_back({block, AccessMode::write});
    blocks_.hold(uses.back());
  }
  EXPECT_FALSE(frames_.take_unused_frames(uses));
  EXPECT_EQ(blocks_.totals().resident_bytes, 0U);
  blocks_.let_go(wanted[1]);
  EXPECT_TRUE(frames_.take_unused_frames({uses.data(), 1}));
  EXPECT_EQ(blocks_.totals().resident_bytes, unit);
}

TEST(ResidentBlocksRandom, keep_their_invariant_with_blocks_that_are_written_evicted_and_removed) {
  std::int64_t evictions = 0;
  for (const std::uint64_t seed : simulation::seeds(200)) {
    std::mt19937_64 random(seed);
    ResidentBlocks all((6 + random() % 6) * unit, unit);
    BlockFrames frames(all);
    ResidencyActions actions;
    std::vector<ResidentBlock> blocks;
    std::vector<ResidencyUse> held;
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t choice = random() % 8;
      if (choice == 0 || blocks.empty()) {
        blocks.push_back(all.add(1 + random() % (2 * unit)));
      } else if (choice < 4) {
        const ResidentBlock block = blocks[random() % blocks.size()];
        const ResidentBlocks::Block& b = all.at(block);
        const bool is_written = b.content == BlockContent::invalid || random() % 2 == 0;
        const ResidencyUse use{block, is_written ? AccessMode::write : AccessMode::read};
        if (b.pins > 0 || b.is_in_transfer() || all.is_claimed(b)) continue;
        all.hold(use);
        if (b.extent != FrameSpace::none || frames.provide_space(block, actions)) {
          held.push_back(use);
        } else {
          all.let_go(block);
        }
      } else if (choice < 6 && !held.empty()) {
        const std::size_t chosen = random() % held.size();
        if (!all.is_usable(all.at(held[chosen].block), held[chosen].mode)) continue;
        all.release(held[chosen]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(chosen));
      } else if (!actions.write_backs.empty()) {
        const ResidentBlock block = actions.write_backs.back().block;
        actions.write_backs.pop_back();
        frames.write_back_finished(block, actions);
      } else if (!actions.fetches.empty()) {
        all.fetch_finished(actions.fetches.back().block);
        actions.fetches.pop_back();
      } else {
        frames.write_back_early(random() % (4 * unit), 2, actions);
      }
      ASSERT_TRUE(all.is_valid()) << "step " << step << ", " << replay_hint(seed);
    }
    evictions += all.statistics().evictions;
  }
  EXPECT_GT(evictions, 0);
}

}  // namespace heddle
