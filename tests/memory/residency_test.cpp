#include <gtest/gtest.h>

#include "tests/memory/residency_directory.hpp"

namespace heddle::residency_tests {

TEST(Residency, takes_a_block_through_its_states) {
  Directory d(1);
  const auto a = d.add();
  EXPECT_EQ(d.r.content(a), Content::invalid);
  EXPECT_FALSE(d.r.is_resident(a));

  EXPECT_TRUE(d.is_ready(d.request(write(a))));  // a frame and no fetch
  EXPECT_EQ(d.transfers(), 0U);
  EXPECT_EQ(d.r.offset_of(a), 0U);
  d.release(write(a));
  EXPECT_EQ(d.r.content(a), Content::modified);
  EXPECT_EQ(d.r.dirty_bytes(), tile);

  const auto b = d.add();
  const TicketId second = d.request(write(b));
  EXPECT_EQ(d.writing(), Blocks{a});
  EXPECT_FALSE(d.is_ready(second));
  d.written(a);
  EXPECT_EQ(d.r.content(a), Content::backed);
  EXPECT_FALSE(d.r.is_resident(a));
  EXPECT_TRUE(d.is_ready(second));
  d.release(write(b));
  d.r.discard(b, d.actions);
  EXPECT_EQ(d.r.content(b), Content::invalid);

  d.actions.clear();
  const TicketId third = d.request(read({a}));
  EXPECT_EQ(d.fetching(), Blocks{a});
  EXPECT_EQ(d.actions.fetches[0].bytes, tile);
  EXPECT_FALSE(d.is_ready(third));
  d.fetched(a);
  EXPECT_EQ(d.r.content(a), Content::shared);
  EXPECT_TRUE(d.is_ready(third));
  d.release(read({a}));
  EXPECT_EQ(d.r.dirty_bytes(), 0U);
  d.use(update(a));
  EXPECT_EQ(d.r.content(a), Content::modified);
}

TEST(Residency, evicts_what_is_shared_without_writing_it_again) {
  Directory d(1);
  const auto a = d.shared();
  const auto b = d.add();
  EXPECT_TRUE(d.is_ready(d.request(write(b))));
  EXPECT_EQ(d.r.content(a), Content::backed);
  EXPECT_TRUE(d.writing().empty());
}

TEST(Residency, does_not_fetch_what_is_overwritten) {
  Directory d(1);
  const auto a = d.backed();
  EXPECT_TRUE(d.is_ready(d.request(write(a))));
  EXPECT_TRUE(d.fetching().empty());
}

TEST(Residency, does_not_evict_what_is_pinned) {
  Directory d(1);
  const auto a = d.modified();
  ASSERT_TRUE(d.r.try_acquire(read({a})));
  const TicketId waiting = d.request(write(d.add()));
  EXPECT_EQ(d.transfers(), 0U);
  EXPECT_EQ(d.r.waiting(), 1U);
  d.release(read({a}));
  EXPECT_EQ(d.writing(), Blocks{a});
  d.written(a);
  EXPECT_TRUE(d.is_ready(waiting));
}

TEST(Residency, evicts_discarded_then_clean_then_modified_blocks) {
  Directory d(3);
  const auto clean = d.shared();
  const auto discarded = d.modified();
  const auto dirty = d.modified();
  d.use(read({clean}));  // the most recent one
  d.r.discard(discarded, d.actions);
  ASSERT_EQ(d.r.resident_bytes(), 3 * tile);
  (void)d.request(write(d.add()));
  EXPECT_FALSE(d.r.is_resident(discarded));
  EXPECT_TRUE(d.r.is_resident(clean));
  (void)d.request(write(d.add()));
  EXPECT_FALSE(d.r.is_resident(clean));
  EXPECT_EQ(d.transfers(), 0U);
  (void)d.request(write(d.add()));
  EXPECT_EQ(d.writing(), Blocks{dirty});
}

TEST(Residency, evicts_the_least_recently_used_of_the_modified) {
  Directory d(3);
  const auto a = d.modified();
  const auto b = d.modified();
  const auto c = d.modified();
  d.use(read({a}));
  (void)d.request(write(d.add()));
  EXPECT_EQ(d.writing(), Blocks{b});
  EXPECT_EQ(d.r.content(c), Content::modified);
}

TEST(Residency, waits_for_a_write_back_under_way_rather_than_start_another) {
  Directory d(2, 1, 0);
  (void)d.backed();
  const auto a = d.modified();
  (void)d.modified();
  ASSERT_EQ(d.writing(), Blocks{a});
  const TicketId waiting = d.request(write(d.add()));
  EXPECT_EQ(d.writing(), Blocks{a});
  d.written(a);
  EXPECT_TRUE(d.is_ready(waiting));
}

TEST(Residency, empties_the_window_with_the_fewest_bytes_to_write) {
  Directory d(5);
  const auto a = d.modified(2);
  const auto b = d.modified();
  const auto c = d.modified();
  const auto d1 = d.modified();
  d.use(read({b}));
  d.use(read({d1}));
  d.use(read({c}));
  (void)d.request(write(d.add(2)));  // all windows write two tiles; a is the oldest
  EXPECT_EQ(d.writing(), Blocks{a});
  (void)d.request(write(d.add(2)));  // b and c, or c and d1: both with the newest
  EXPECT_EQ(d.writing(), (Blocks{a, b, c}));
}

TEST(Residency, empties_several_discarded_frames_rather_than_a_clean_one) {
  Directory d(4);
  const auto clean = d.modified(2);
  d.evict_all();
  d.use(read({clean}));
  const auto a = d.modified();
  const auto b = d.modified();
  d.r.discard(a, d.actions);
  d.r.discard(b, d.actions);
  EXPECT_TRUE(d.is_ready(d.request(write(d.add(2)))));
  EXPECT_TRUE(d.r.is_resident(clean));
}

TEST(Residency, writes_back_all_of_a_window_before_it_is_used) {
  Directory d(2);
  const auto a = d.modified();
  const auto b = d.modified();
  const auto large = d.add(2);
  const TicketId waiting = d.request(write(large));
  EXPECT_EQ(d.writing(), (Blocks{a, b}));
  d.written(b);
  EXPECT_FALSE(d.is_ready(waiting));
  EXPECT_FALSE(d.r.try_acquire(write(b)));  // the free half is spoken for
  EXPECT_FALSE(d.r.try_acquire(read({a})));
  d.written(a);
  EXPECT_TRUE(d.is_ready(waiting));
  EXPECT_EQ(d.r.offset_of(large), 0U);
}

TEST(Residency, moves_nothing_while_everything_fits) {
  Directory d(4, 2, 0);
  Blocks blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(d.modified());
  for (int round = 0; round < 3; ++round) {
    for (const auto b : blocks) d.use(update(b));
  }
  d.r.discard(blocks[0], d.actions);
  const auto renamed = d.modified();  // takes the discarded block's frame
  EXPECT_TRUE(d.r.is_resident(renamed));
  EXPECT_EQ(d.transfers(), 0U);
  EXPECT_EQ(d.r.statistics().evictions, 0);
}

TEST(Residency, under_pressure_writes_back_early_what_exceeds_the_share) {
  Directory d(4, 2, 0.5);
  const auto a = d.backed();
  const auto b = d.modified();
  const auto c = d.modified();
  EXPECT_EQ(d.transfers(), 0U);  // half of the pool
  const auto e = d.modified();
  EXPECT_EQ(d.writing(), Blocks{b});
  d.use(update(c));
  EXPECT_EQ(d.writing(), Blocks{b});  // what is under way counts
  d.written(b);
  EXPECT_EQ(d.r.content(b), Content::shared);
  EXPECT_TRUE(d.r.is_resident(b));
  EXPECT_EQ(d.r.dirty_bytes(), 2 * tile);
  d.r.discard(a, d.actions);  // now everything fits
  d.actions.clear();
  d.use(update(b));
  EXPECT_EQ(d.transfers(), 0U);
  EXPECT_EQ(d.r.content(e), Content::modified);
}

TEST(Residency, bounds_the_write_backs_ahead_of_need) {
  Directory d(5, 2, 0);
  (void)d.backed();
  for (int i = 0; i < 4; ++i) d.use(write(d.add()));
  EXPECT_EQ(d.actions.write_backs.size(), 2U);
}

TEST(Residency, reclaims_discarded_blocks_without_writing) {
  Directory d(2);
  const auto a = d.modified();
  const auto b = d.modified();
  d.r.discard(a, d.actions);
  d.r.discard(b, d.actions);
  EXPECT_TRUE(d.is_ready(d.request(write(d.add(2)))));
  EXPECT_EQ(d.transfers(), 0U);
}

TEST(Residency, keeps_the_frame_of_a_discarded_block_for_its_next_content) {
  Directory d(2);
  const auto a = d.modified();
  d.r.discard(a, d.actions);
  EXPECT_TRUE(d.r.is_resident(a));
  EXPECT_TRUE(d.r.try_acquire(write(a)));
}

TEST(Residency, reclaims_what_is_discarded_in_transfer_when_that_ends) {
  Directory d(1);
  const auto a = d.modified();
  const TicketId first = d.request(write(d.add()));
  d.r.discard(a, d.actions);
  EXPECT_TRUE(d.r.is_in_transfer(a));
  EXPECT_FALSE(d.is_ready(first));
  d.written(a);
  EXPECT_EQ(d.r.content(a), Content::invalid);
  EXPECT_TRUE(d.is_ready(first));
  d.r.remove_block(a);

  Directory e(1);
  const auto b = e.backed();
  EXPECT_TRUE(e.r.cancel(e.request(read({b})), e.actions));
  e.r.discard(b, e.actions);
  const TicketId second = e.request(write(e.add()));
  EXPECT_FALSE(e.is_ready(second));
  e.fetched(b);
  EXPECT_EQ(e.r.content(b), Content::invalid);
  EXPECT_TRUE(e.is_ready(second));
}

TEST(Residency, gives_the_ids_of_removed_blocks_again) {
  Directory d(2);
  const auto a = d.modified();
  d.r.remove_block(a);
  EXPECT_EQ(d.r.resident_bytes(), 0U);
  EXPECT_EQ(d.r.dirty_bytes(), 0U);
  const auto b = d.add();
  EXPECT_EQ(b, a);
  EXPECT_EQ(d.r.content(b), Content::invalid);
}

TEST(Residency, counts_what_it_did) {
  Directory d(2);
  const auto a = d.modified();
  const auto b = d.modified();
  const auto c = d.modified();  // a goes
  d.use(read({a}));             // b goes
  const auto& s = d.r.statistics();
  EXPECT_EQ(s.fetches, 1);
  EXPECT_EQ(s.fetched_bytes, tile);
  EXPECT_EQ(s.write_backs, 2);
  EXPECT_EQ(s.written_bytes, 2 * tile);
  EXPECT_EQ(s.evictions, 2);
  EXPECT_EQ(s.resident_bytes_max, 2 * tile);
  EXPECT_EQ(d.r.content(b), Content::backed);
  EXPECT_EQ(d.r.content(c), Content::modified);
}

TEST(Residency, aligns_frames) {
  Residency r({.bytes = 4096, .alignment = 512});
  Residency::Actions actions;
  const auto a = r.add_block(10);
  const auto b = r.add_block(0);
  ASSERT_TRUE(r.try_acquire(Uses{{a, AccessMode::write}, {b, AccessMode::write}}));
  EXPECT_EQ(r.offset_of(b), 512U);
  EXPECT_EQ(r.resident_bytes(), 1024U);
}

TEST(ResidencyDeathTest, misuse_is_named) {
  Directory d(2);
  const auto a = d.modified();
  const auto b = d.add();
  Residency::Actions actions;
  EXPECT_DEATH((void)d.r.request(read({b}), actions), "block 1 is read but has no content");
  ASSERT_TRUE(d.r.try_acquire(read({a})));
  EXPECT_DEATH((void)d.r.try_acquire(write(a)), "block 0 is written while it is in use");
  EXPECT_DEATH(d.r.discard(a, actions), "block 0 is discarded with 1 pins");
  EXPECT_DEATH(d.r.remove_block(a), "block 0: 1 pins");
  EXPECT_DEATH(d.r.release(write(a), actions), "block 0: 1 pins of mode");
  EXPECT_DEATH(d.r.fetch_finished(a, actions), "block 0");
}

}  // namespace heddle::residency_tests
