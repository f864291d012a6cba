#include <gtest/gtest.h>

#include "tests/memory/residency_directory.hpp"

/// Blocks that are used on the host.
namespace heddle::residency_tests {

TEST(ResidencyHost, writes_a_modified_block_back_for_a_reader_and_leaves_it_in_its_frame) {
  Directory d(2);
  const auto a = d.modified();
  const TicketId id = d.request_host(read({a}));
  EXPECT_EQ(d.writing(), Blocks{a});
  EXPECT_EQ(d.actions.write_backs[0].bytes, tile);
  EXPECT_FALSE(d.is_ready(id));
  d.written(a);
  EXPECT_TRUE(d.is_ready(id));
  EXPECT_EQ(d.r.content(a), Content::shared);
  EXPECT_TRUE(d.r.is_resident(a));
  d.release_host(read({a}));
  EXPECT_TRUE(d.r.try_acquire(read({a})));  // without a fetch
}

TEST(ResidencyHost, has_a_write_back_as_urgent_as_the_most_urgent_who_waits_for_it) {
  Directory d(2);
  const auto a = d.modified();
  const TicketId first = d.request_host(urgent(read({a}), 2));
  EXPECT_EQ(d.r.priority_of(a), 2);
  const TicketId second = d.request_host(urgent(read({a}), 6));
  EXPECT_EQ(d.r.priority_of(a), 6);
  d.written(a);
  EXPECT_TRUE(d.is_ready(first) && d.is_ready(second));
}

TEST(ResidencyHost, hands_out_what_is_in_the_backing_at_once) {
  Directory d(2);
  const auto a = d.shared();
  EXPECT_TRUE(d.is_ready(d.request_host(read({a}))));
  EXPECT_EQ(d.r.content(a), Content::shared);
  d.release_host(read({a}));
  const auto b = d.backed();
  EXPECT_TRUE(d.is_ready(d.request_host(read({b}))));
  EXPECT_EQ(d.r.content(b), Content::backed);
  EXPECT_FALSE(d.r.is_resident(b));
  EXPECT_EQ(d.transfers(), 0U);
}

TEST(ResidencyHost, leaves_what_is_updated_without_a_frame_and_the_device_fetches_it) {
  Directory d(2);
  const auto a = d.modified();
  const TicketId id = d.request_host(update(a));
  EXPECT_EQ(d.writing(), Blocks{a});
  d.finish_all();
  EXPECT_TRUE(d.is_ready(id));
  EXPECT_EQ(d.r.content(a), Content::backed);
  EXPECT_FALSE(d.r.is_resident(a));
  EXPECT_EQ(d.r.resident_bytes(), 0U);
  EXPECT_EQ(d.r.dirty_bytes(), 0U);
  d.release_host(update(a));

  const TicketId next = d.request(read({a}));
  EXPECT_EQ(d.fetching(), Blocks{a});
  EXPECT_FALSE(d.is_ready(next));
  d.finish_all();
  EXPECT_TRUE(d.is_ready(next));
  EXPECT_EQ(d.r.content(a), Content::shared);
  EXPECT_EQ(d.r.statistics().evictions, 0);
}

TEST(ResidencyHost, does_not_write_back_what_is_overwritten) {
  Directory d(4);
  const auto shared = d.shared();
  const auto modified = d.modified();
  const auto fresh = d.add();
  EXPECT_TRUE(d.is_ready(d.request_host(write(modified))));
  EXPECT_TRUE(d.is_ready(d.request_host(write(fresh))));
  EXPECT_TRUE(d.is_ready(d.request_host(write(shared))));
  EXPECT_EQ(d.transfers(), 0U);
  for (const auto b : {modified, fresh, shared}) {
    EXPECT_EQ(d.r.content(b), Content::backed);
    EXPECT_FALSE(d.r.is_resident(b));
    d.release_host(write(b));
  }
}

TEST(ResidencyHost, waits_with_a_write_for_the_end_of_a_write_back) {
  Directory d(1);
  const auto a = d.modified();
  const TicketId other = d.request(write(d.add()));
  ASSERT_EQ(d.writing(), Blocks{a});
  const TicketId id = d.request_host(write(a));
  EXPECT_FALSE(d.is_ready(id));
  d.finish_all();
  EXPECT_TRUE(d.is_ready(id));
  EXPECT_TRUE(d.is_ready(other));
  EXPECT_EQ(d.r.statistics().write_backs, 1);
}

TEST(ResidencyHost, waits_with_a_write_for_the_end_of_a_fetch_and_a_read_does_not) {
  for (const Uses& use : {Uses{{ResidentBlock{0}, AccessMode::write}},
                          Uses{{ResidentBlock{0}, AccessMode::read_write}}}) {
    Directory d(1);
    const auto a = d.backed();
    ASSERT_EQ(a, use[0].block);
    EXPECT_TRUE(d.r.cancel(d.request(read({a})), d.actions));
    ASSERT_EQ(d.fetching(), Blocks{a});
    EXPECT_TRUE(d.is_ready(d.request_host(read({a}))));
    d.release_host(read({a}));
    const TicketId id = d.request_host(use);
    EXPECT_FALSE(d.is_ready(id));
    d.finish_all();
    EXPECT_TRUE(d.is_ready(id));
    EXPECT_FALSE(d.r.is_resident(a));
    EXPECT_EQ(d.r.statistics().write_backs, 1);  // the one of backed()
  }
}

TEST(ResidencyHost, reads_next_to_readers_on_host_and_device) {
  Directory d(2);
  const auto a = d.modified();
  ASSERT_TRUE(d.r.try_acquire(read({a})));
  const TicketId first = d.request_host(read({a}));
  const TicketId second = d.request_host(read({a}));
  EXPECT_EQ(d.writing(), Blocks{a});  // once
  EXPECT_TRUE(d.r.try_acquire(read({a})));
  d.finish_all();
  EXPECT_TRUE(d.is_ready(first));
  EXPECT_TRUE(d.is_ready(second));
  EXPECT_TRUE(d.r.try_acquire(read({a})));
  EXPECT_TRUE(d.is_ready(d.request_host(read({a}))));
  for (int i = 0; i < 3; ++i) {
    d.release(read({a}));
    d.release_host(read({a}));
  }
  d.use(update(a));
  EXPECT_EQ(d.r.content(a), Content::modified);
}

TEST(ResidencyHost, reads_on_while_the_frame_is_evicted_and_fetched_again) {
  Directory d(1);
  const auto a = d.shared();
  ASSERT_TRUE(d.is_ready(d.request_host(read({a}))));
  d.use(write(d.add()));
  EXPECT_EQ(d.r.content(a), Content::backed);
  d.actions.clear();
  const TicketId id = d.request(read({a}));
  d.finish_all();
  d.finish_all();
  EXPECT_TRUE(d.is_ready(id));
  d.release(read({a}));
  d.release_host(read({a}));
}

TEST(ResidencyHost, hands_out_all_blocks_of_a_use_together) {
  Directory d(4);
  const auto a = d.modified();
  const auto b = d.modified();
  const auto c = d.modified();
  const TicketId id =
      d.request_host({{a, AccessMode::read}, {b, AccessMode::read}, {c, AccessMode::write}});
  EXPECT_EQ(d.writing(), (Blocks{a, b}));
  d.written(b);
  EXPECT_FALSE(d.is_ready(id));
  EXPECT_TRUE(d.r.is_resident(c));
  d.written(a);
  EXPECT_TRUE(d.is_ready(id));
  EXPECT_FALSE(d.r.is_resident(c));
}

TEST(ResidencyHost, needs_no_room_and_does_not_wait_for_those_who_do) {
  Directory d(1);
  const auto a = d.modified();
  ASSERT_TRUE(d.r.try_acquire(read({a})));
  const auto b = d.add();
  const TicketId waiting = d.request(write(b));
  const auto c = d.add();
  EXPECT_TRUE(d.is_ready(d.request_host(write(c))));
  const TicketId reader = d.request_host(read({a}));
  d.finish_all();
  EXPECT_TRUE(d.is_ready(reader));
  EXPECT_FALSE(d.is_ready(waiting));
  d.release(read({a}));  // the host's use holds no frame
  EXPECT_TRUE(d.is_ready(waiting));
  EXPECT_EQ(d.r.content(a), Content::backed);
}

TEST(ResidencyHost, is_no_pressure_with_what_it_leaves_but_what_is_evicted_is) {
  Directory d(2, 2, 0);
  const auto left = d.modified();
  ASSERT_TRUE(d.is_ready(d.request_host(write(left))));
  d.release_host(write(left));
  const auto a = d.modified();
  d.use(update(a));
  EXPECT_EQ(d.transfers(), 0U);
  d.use(read({left}));  // and evicted, which makes it like any other
  d.actions.clear();
  const auto b = d.add();
  d.use(write(b));
  EXPECT_EQ(d.r.content(left), Content::backed);
  d.use(update(a));
  EXPECT_GT(d.writing().size() + static_cast<std::size_t>(d.r.statistics().write_backs), 0U);
}

TEST(ResidencyHost, counts_the_bytes_that_a_use_would_write_back) {
  Directory d(8);
  const auto shared = d.shared();
  const auto a = d.modified();
  const auto b = d.modified(2);
  EXPECT_EQ(d.r.missing_host_bytes(read({shared, a, b})), 3 * tile);
  EXPECT_EQ(d.r.missing_host_bytes(write(a)), 0U);
  EXPECT_EQ(d.r.missing_host_bytes(update(b)), 2 * tile);
  d.use_host(read({b}));
  EXPECT_EQ(d.r.missing_host_bytes(read({shared, a, b})), tile);
}

TEST(ResidencyHost, leaves_blocks_that_can_be_discarded_and_removed) {
  Directory d(2);
  const auto a = d.modified();
  d.use_host(update(a));
  d.r.discard(a, d.actions);
  EXPECT_EQ(d.r.content(a), Content::invalid);
  EXPECT_TRUE(d.r.is_valid());
  d.use_host(write(a));
  d.r.remove_block(a);
  EXPECT_TRUE(d.r.is_valid());
  EXPECT_EQ(d.add(), a);
}

TEST(ResidencyHostDeathTest, misuse_is_named) {
  Directory d(2);
  const auto a = d.modified();
  const auto b = d.add();
  Residency::Actions actions;
  EXPECT_DEATH((void)d.r.request_host(read({b}), actions),
               "block 1 is read on the host but has no content");
  d.request_host(read({a}));
  d.finish_all();
  EXPECT_DEATH(d.r.discard(a, actions), "block 0 is discarded with 0 pins, 1 on the host");
  EXPECT_DEATH(d.r.remove_block(a), "block 0: 0 pins, 1 on the host");
  EXPECT_DEATH((void)d.r.try_acquire(write(a)), "block 0 is written while the host uses it");
  EXPECT_DEATH((void)d.r.request_host(write(a), actions),
               "block 0 is written on the host while it is in use");
  EXPECT_DEATH(d.r.release_host(update(a), actions), "block 0: 1 uses on the host");
  d.release_host(read({a}));
  EXPECT_DEATH(d.r.release_host(read({a}), actions), "block 0: 0 uses on the host");
  ASSERT_TRUE(d.r.try_acquire(read({a})));
  EXPECT_DEATH((void)d.r.request_host(write(a), actions),
               "block 0 is written on the host while it is in use");
  d.r.release(read({a}), actions);
  d.request_host(update(a));
  d.finish_all();
  EXPECT_DEATH((void)d.r.request(read({a}), actions), "block 0 is read while the host writes it");
}

}  // namespace heddle::residency_tests
