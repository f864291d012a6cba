#include <gtest/gtest.h>
#include <string>

#include "base/error.hpp"
#include "tests/memory/residency_directory.hpp"

namespace heddle::residency_tests {

TEST(ResidencyService,
     fetches_a_block_once_for_all_who_wait_and_gives_it_to_none_before_it_is_there) {
  Directory d(3);
  const auto a = d.backed();
  const auto b = d.modified();
  const TicketId first = d.request(read({a}));
  const TicketId second = d.request(read({a, b}));
  EXPECT_EQ(d.fetching(), Blocks{a});
  EXPECT_FALSE(d.r.try_acquire(read({a})));
  EXPECT_FALSE(d.is_ready(first) || d.is_ready(second));
  d.fetched(a);
  EXPECT_TRUE(d.is_ready(first) && d.is_ready(second));
}

TEST(ResidencyService, has_a_fetch_as_urgent_as_the_most_urgent_who_waits_for_it) {
  Directory d(3);
  const auto a = d.backed();
  const auto b = d.modified();
  const TicketId first = d.request(urgent(read({a}), 3));
  EXPECT_EQ(d.r.priority_of(a), 3);
  const TicketId second = d.request(urgent(read({a, b}), 7));
  EXPECT_EQ(d.r.priority_of(a), 7);
  const TicketId third = d.request(urgent(read({a}), 5));
  EXPECT_EQ(d.r.priority_of(a), 7);
  d.fetched(a);
  EXPECT_TRUE(d.is_ready(first) && d.is_ready(second) && d.is_ready(third));
  for (const Uses& uses : {read({a}), read({a, b}), read({a})}) d.release(uses);
  // What was urgent once is so no longer.
  ASSERT_TRUE(d.r.try_acquire(urgent(update(a), 1)));
  EXPECT_EQ(d.r.priority_of(a), 1);
}

TEST(ResidencyService, has_a_write_back_as_urgent_as_the_one_who_gets_its_room) {
  Directory d(2);
  const auto a = d.add();
  const auto b = d.add();
  d.use(urgent(write(a), 9));
  d.use(urgent(write(b), 9));
  (void)d.request(urgent(write(d.add()), 4));
  ASSERT_EQ(d.writing(), Blocks{a});
  EXPECT_EQ(d.r.priority_of(a), 4);
  (void)d.request(urgent(write(d.add()), 6));
  ASSERT_EQ(d.writing(), (Blocks{a, b}));
  EXPECT_EQ(d.r.priority_of(b), 6);
}

TEST(ResidencyService, has_a_write_back_ahead_of_need_last_until_somebody_needs_it) {
  Directory d(2, 1, 0);
  (void)d.backed();
  const auto a = d.modified();
  ASSERT_EQ(d.writing(), Blocks{a});
  EXPECT_LT(d.r.priority_of(a), 0);
  (void)d.request_host(urgent(read({a}), 5));
  EXPECT_EQ(d.r.priority_of(a), 5);
  (void)d.request(urgent(write(d.add(2)), 8));  // its room, too
  EXPECT_EQ(d.r.priority_of(a), 8);
}

TEST(ResidencyService, spares_what_waiting_requests_are_about_to_use) {
  Directory d(3);
  const auto a = d.modified();
  const auto b = d.modified();
  const auto c = d.modified();
  (void)d.request(write(d.add()));  // a has to go
  (void)d.request(read({a}));       // comes back when it has gone
  const TicketId last = d.request(read({b}));
  EXPECT_EQ(d.writing(), Blocks{a});
  d.written(a);
  EXPECT_EQ(d.writing(), (Blocks{a, c}));  // and not b, which was used before c
  EXPECT_TRUE(d.is_ready(last));
}

TEST(ResidencyService, lets_a_block_be_read_but_not_changed_while_it_is_written_back) {
  Directory d(3, 1, 0);
  (void)d.backed();
  const auto a = d.modified();
  ASSERT_EQ(d.writing(), Blocks{a});
  EXPECT_TRUE(d.r.try_acquire(read({a})));
  d.release(read({a}));
  EXPECT_FALSE(d.r.try_acquire(update(a)));
  const TicketId writer = d.request(write(a));
  EXPECT_FALSE(d.is_ready(writer));
  d.written(a);
  EXPECT_TRUE(d.is_ready(writer));
  d.release(write(a));
  EXPECT_EQ(d.r.content(a), Content::modified);
}

TEST(ResidencyService, takes_what_is_at_hand_all_or_nothing) {
  Directory d(3);
  const auto a = d.backed();
  const auto kept = d.modified();
  const auto b = d.modified();
  EXPECT_FALSE(d.r.try_acquire(read({b, a})));
  d.r.discard(b, d.actions);                      // it was not pinned, then
  EXPECT_TRUE(d.r.try_acquire(write(d.add(2))));  // the discarded frame and the gap next to it
  EXPECT_FALSE(d.r.is_resident(b));
  EXPECT_TRUE(d.r.is_resident(kept));
  EXPECT_FALSE(d.r.try_acquire(write(a)));  // full
  EXPECT_EQ(d.r.content(a), Content::backed);
  EXPECT_EQ(d.transfers(), 0U);
}

TEST(ResidencyService, does_not_evict_content_for_an_attempt) {
  Directory d(1);
  const auto a = d.shared();
  EXPECT_FALSE(d.r.try_acquire(write(d.add())));
  EXPECT_TRUE(d.r.is_resident(a));
}

TEST(ResidencyService, undoes_an_attempt_that_has_space_for_some_only) {
  Directory d(3);
  const auto kept = d.modified();
  const auto a = d.add();
  const auto b = d.add(2);
  EXPECT_FALSE(d.r.try_acquire(
      Uses{{kept, AccessMode::read}, {a, AccessMode::write}, {b, AccessMode::write}}));
  EXPECT_TRUE(d.r.is_valid());
  EXPECT_FALSE(d.r.is_resident(a));
  EXPECT_EQ(d.r.resident_bytes(), tile);
}

TEST(ResidencyService, lets_attempts_overtake_a_waiting_request_a_few_times_only) {
  Directory d(2);
  const auto a = d.modified();
  const auto b = d.modified();
  ASSERT_TRUE(d.r.try_acquire(read({a})));
  const TicketId head = d.request(write(d.add(2)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(d.r.try_acquire(read({b})));
    d.release(read({b}));
  }
  EXPECT_FALSE(d.r.try_acquire(read({b})));
  d.release(read({a}));
  d.finish_all();
  EXPECT_TRUE(d.is_ready(head));
}

/// Messages, whose ends other nodes' heads may wait for.
TEST(ResidencyService, lets_some_attempts_overtake_a_waiting_request_however_often) {
  using Overtaking = Residency::Overtaking;
  Directory d(2);
  const auto a = d.modified();
  const auto b = d.modified();
  ASSERT_TRUE(d.r.try_acquire(read({a})));
  const TicketId head = d.request(write(d.add(2)));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(d.r.try_acquire(read({b}), Overtaking::free));
    d.release(read({b}));
  }
  EXPECT_TRUE(d.r.try_acquire(read({b}), Overtaking::limited)) << "those before do not count";
  d.release(read({b}));
  EXPECT_FALSE(d.r.try_acquire(write(d.add()), Overtaking::free)) << "nor do they take space";
  d.release(read({a}));
  d.finish_all();
  EXPECT_TRUE(d.is_ready(head));
}

TEST(ResidencyService, keeps_space_for_the_head_from_those_behind_it) {
  Directory d(4);
  const auto a = d.modified();
  ASSERT_TRUE(d.r.try_acquire(read({a})));
  const auto backed_up = d.add();
  const TicketId head = d.request(write(d.add(4)));
  const TicketId later = d.request(write(backed_up));
  EXPECT_FALSE(d.is_ready(later));  // though three tiles are free
  EXPECT_FALSE(d.r.try_acquire(write(d.add())));
  d.release(read({a}));
  d.finish_all();
  EXPECT_TRUE(d.is_ready(head));
}

TEST(ResidencyService, fetches_ahead_for_later_requests_with_what_the_head_leaves) {
  Directory d(3);
  const auto a = d.backed();
  const auto b = d.modified();
  d.evict_all();
  const auto c = d.modified();
  const TicketId head = d.request(read({a}));
  const TicketId later = d.request(read({b, c}));
  EXPECT_EQ(d.fetching(), (Blocks{a, b}));
  d.fetched(b);
  EXPECT_TRUE(d.is_ready(later));  // ready in any order
  EXPECT_FALSE(d.is_ready(head));
}

TEST(ResidencyService, forgets_cancelled_requests_in_every_stage) {
  Directory d(2);
  const auto a = d.modified();
  const auto b = d.modified();
  ASSERT_TRUE(d.r.try_acquire(read({b})));
  const TicketId claiming = d.request(write(d.add()));
  const TicketId blocked = d.request(write(d.add()));
  EXPECT_EQ(d.writing(), Blocks{a});
  EXPECT_TRUE(d.r.cancel(blocked, d.actions));
  EXPECT_TRUE(d.r.cancel(claiming, d.actions));
  EXPECT_TRUE(d.r.is_valid());
  EXPECT_FALSE(d.r.cancel(claiming, d.actions));
  d.written(a);
  EXPECT_EQ(d.r.content(a), Content::shared);  // nobody needed its frame in the end
  EXPECT_TRUE(d.r.is_resident(a));
  EXPECT_EQ(d.r.waiting(), 0U);
}

TEST(ResidencyService, keeps_the_content_that_a_cancelled_request_would_have_overwritten) {
  Directory d(2, 1, 0);
  const auto a = d.backed();
  const auto b = d.backed();
  const TicketId both = d.request(Uses{{a, AccessMode::write}, {b, AccessMode::read}});
  EXPECT_TRUE(d.r.is_resident(a));
  EXPECT_TRUE(d.r.cancel(both, d.actions));
  EXPECT_FALSE(d.r.is_resident(a));
  EXPECT_EQ(d.r.content(a), Content::backed);
  d.fetched(b);
  EXPECT_EQ(d.r.content(b), Content::shared);
}

TEST(ResidencyService, refuses_what_exceeds_the_pool_with_numbers) {
  Directory d(2);
  const auto a = d.add();
  const auto b = d.add(2);
  try {
    (void)d.request(Uses{{a, AccessMode::write}, {b, AccessMode::write}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("2 tiles of a task take 3.00 KiB"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(d.r.waiting(), 0U);
}

TEST(ResidencyService, refuses_what_its_own_blocks_cut_off_instead_of_waiting_forever) {
  Directory d(3);
  const auto a = d.modified();
  const auto b = d.modified();
  const auto c = d.modified();
  d.r.discard(a, d.actions);
  d.r.discard(c, d.actions);
  const auto large = d.add(2);
  EXPECT_THROW((void)d.request(Uses{{b, AccessMode::read}, {large, AccessMode::write}}), Error);
  EXPECT_TRUE(d.r.is_valid());
  EXPECT_EQ(d.r.waiting(), 0U);
  EXPECT_LT(d.r.bytes(), Residency::minimum_bytes(2 * tile, 2, 0));
  EXPECT_TRUE(d.is_ready(d.request(read({b}))));
}

TEST(ResidencyService, says_which_pool_suffices) {
  using enum Residency::BlockSizes;
  EXPECT_EQ(Residency::minimum_bytes(1000, 3, 0, equal), 3U * 1024);
  EXPECT_EQ(Residency::minimum_bytes(1000, 3, 0, mixed), 5U * 1024);
  EXPECT_EQ(Residency::minimum_bytes(1024, 3, 2), 9U * 1024);
  EXPECT_EQ(Residency::minimum_bytes(1, 1, 0, mixed, 64), 64U);
}

}  // namespace heddle::residency_tests
