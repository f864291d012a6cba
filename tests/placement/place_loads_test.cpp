#include "node-runtime/placement/place_loads.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr PlaceId device{1};
constexpr double task_seconds = 1e-3;  ///< as known

/// Places, and a clock.
struct Places {
  PlaceLoads loads{2};
  std::int64_t now_ns = 0;

  void pass(double seconds) { now_ns += std::llround(seconds * 1e9); }
  void add(double seconds = task_seconds) { loads.add(device, {seconds}, now_ns); }
  void finish(double seconds = task_seconds) { loads.finish(device, {seconds}, now_ns); }
  /// Tasks one after the other, each of which takes `ratio` times as long as is known.
  void run(int tasks, double ratio, double pause = 0) {
    for (int i = 0; i < tasks; ++i) {
      add();
      pass(ratio * task_seconds);
      finish();
      pass(pause);
    }
  }
};

}  // namespace

TEST(PlaceLoads, adds_up_what_each_place_has) {
  Places p;
  p.add(0.5);
  p.add(0.25);
  EXPECT_DOUBLE_EQ(p.loads.seconds(device), 0.75);
  EXPECT_EQ(p.loads.tasks(device), 2);
  EXPECT_EQ(p.loads.seconds(host_place), 0);
  EXPECT_EQ(p.loads.tasks(host_place), 0);
  p.loads.remove(device, {0.5}, p.now_ns);
  EXPECT_DOUBLE_EQ(p.loads.seconds(device), 0.25);
}

TEST(PlaceLoads, of_an_empty_place_is_exactly_nothing) {
  for (const bool runs : {false, true}) {
    Places p;
    for (int i = 0; i < 10; ++i) p.add(0.1);
    p.add(0.7);
    for (int i = 0; i < 10; ++i) {
      p.pass(0.3);
      runs ? p.finish(0.1) : p.loads.remove(device, {0.1}, p.now_ns);
      EXPECT_GT(p.loads.seconds(device), 0);
    }
    runs ? p.finish(0.7) : p.loads.remove(device, {0.7}, p.now_ns);
    EXPECT_EQ(p.loads.seconds(device), 0);
    EXPECT_EQ(p.loads.tasks(device), 0);
  }
}

TEST(PlaceLoads, believes_what_is_known_at_first) {
  Places p;
  EXPECT_EQ(p.loads.factor(device), 1);
  p.add(2);
  p.pass(100);  // and has not ended
  EXPECT_EQ(p.loads.factor(device), 1);
  EXPECT_EQ(p.loads.seconds(device), 2);
  Places right;
  right.run(100, 1);
  EXPECT_NEAR(right.loads.factor(device), 1, 1e-6);
}

TEST(PlaceLoads, learns_how_much_slower_or_faster_a_place_is) {
  for (const double ratio : {0.05, 0.5, 0.9, 1.2, 3.0, 20.0}) {
    Places p;
    p.run(400, ratio);
    EXPECT_NEAR(p.loads.factor(device), ratio, 0.02 * ratio);
    p.add(0.5);
    EXPECT_DOUBLE_EQ(p.loads.seconds(device), 0.5 * p.loads.factor(device));
    EXPECT_EQ(p.loads.factor(host_place), 1);
  }
}

TEST(PlaceLoads, learns_the_same_from_tasks_that_wait_in_line) {
  Places p;
  for (int i = 0; i < 5; ++i) p.add();
  for (int i = 0; i < 400; ++i) {
    p.pass(3 * task_seconds);
    p.add();
    p.finish();
  }
  EXPECT_NEAR(p.loads.factor(device), 3, 0.06);
}

TEST(PlaceLoads, forgets_how_a_place_once_was) {
  Places p;
  p.run(400, 10);
  p.run(400, 2);
  EXPECT_NEAR(p.loads.factor(device), 2, 0.04);
}

TEST(PlaceLoads, does_not_count_the_time_without_tasks) {
  Places busy;
  Places idle;
  busy.run(50, 3);
  idle.pass(7);
  idle.run(50, 3, 1.5);
  EXPECT_DOUBLE_EQ(idle.loads.factor(device), busy.loads.factor(device));
}

TEST(PlaceLoads, does_not_let_one_odd_task_decide) {
  Places first;
  first.run(1, 100);
  EXPECT_GT(first.loads.factor(device), 1);
  EXPECT_LT(first.loads.factor(device), 25);
  EXPECT_EQ(first.loads.sure_factor(device), 2);
  first.run(120, 1);
  EXPECT_LT(first.loads.factor(device), 1.3);
  Places later;
  later.run(100, 1);
  later.run(1, 10);
  EXPECT_GT(later.loads.factor(device), 1.1);
  EXPECT_LT(later.loads.factor(device), 1.5);
}

TEST(PlaceLoads, does_not_take_a_pause_for_slowness) {
  for (const int waiting : {1, 5, 60}) {
    Places p;
    for (int i = 0; i < waiting; ++i) p.add();
    p.pass(1000 * task_seconds);  // its kernels are loaded
    for (int i = 0; i < 200; ++i) {
      p.pass(task_seconds);
      p.finish();
      EXPECT_LE(p.loads.sure_factor(device), 2.01);
      p.add();
    }
    EXPECT_NEAR(p.loads.factor(device), 1, 0.1);
  }
}

TEST(PlaceLoads, learns_the_same_from_tasks_that_finish_together) {
  for (const double ratio : {0.2, 1.0, 10.0}) {
    Places p;
    constexpr int together = 56;
    double mean = 0;
    constexpr int turns = 20;
    for (int turn = 0; turn < turns; ++turn) {
      for (int i = 0; i < together; ++i) p.add();
      p.pass(ratio * together * task_seconds);
      for (int i = 0; i < together; ++i) {
        p.finish();
        if (turn >= turns / 2) mean += p.loads.sure_factor(device);
      }
    }
    mean /= together * turns / 2;
    EXPECT_GT(mean, 0.6 * ratio);
    EXPECT_LT(mean, 1.5 * ratio);
  }
}

TEST(PlaceLoads, learns_the_same_from_a_short_task_that_finishes_with_a_long_one) {
  Places p;
  for (int turn = 0; turn < 200; ++turn) {
    p.add(1e-4);
    p.add(1e-2);
    p.pass(2 * 1.01e-2);
    p.finish(1e-4);
    p.finish(1e-2);
  }
  EXPECT_NEAR(p.loads.factor(device), 2, 0.1);
  EXPECT_NEAR(p.loads.sure_factor(device), 2, 0.1);
}

TEST(PlaceLoads, knows_after_some_tasks_that_a_place_is_far_slower) {
  Places p;
  p.run(16, 100);
  EXPECT_GT(p.loads.sure_factor(device), 50);
}

TEST(PlaceLoads, is_not_slow_where_only_a_part_of_it_has_something_to_do) {
  for (const int workers_busy : {1, 2, 4}) {
    Places p;
    const PlaceLoads::Work work{.seconds = task_seconds / 4, .share = 0.25};
    for (int round = 0; round < 50; ++round) {
      for (int i = 0; i < workers_busy; ++i) p.loads.add(device, work, p.now_ns);
      p.pass(task_seconds);  // as one of four workers needs
      for (int i = 0; i < workers_busy; ++i) p.loads.finish(device, work, p.now_ns);
    }
    EXPECT_NEAR(p.loads.factor(device), 1, 0.1) << workers_busy;
    EXPECT_EQ(p.loads.seconds(device), 0);
  }
}

TEST(PlaceLoads, believes_again_of_a_place_what_is_known_after_a_long_rest) {
  Places p;
  p.run(100, 8);
  EXPECT_GT(p.loads.factor(device), 7);
  p.pass(9);
  p.loads.forget_after_rest(device, p.now_ns);
  EXPECT_GT(p.loads.factor(device), 7) << "it has not been long enough";
  p.add();
  p.pass(20);
  p.loads.forget_after_rest(device, p.now_ns);
  EXPECT_GT(p.loads.factor(device), 7) << "it has something to do";
  p.finish();
  p.pass(11);
  p.loads.forget_after_rest(device, p.now_ns);
  EXPECT_EQ(p.loads.factor(device), 1);
  EXPECT_EQ(p.loads.sure_factor(device), 1);
}

TEST(PlaceLoads, takes_a_place_that_rests_for_half_as_slow_down_to_the_best_that_it_has_shown) {
  Places p;
  p.run(64, 2);   // at work
  p.run(64, 16);  // at the end of a job
  EXPECT_GT(p.loads.factor(device), 12);
  const double slow = p.loads.factor(device);
  p.pass(7 * slow * task_seconds);
  p.loads.forget_after_rest(device, p.now_ns);
  EXPECT_EQ(p.loads.factor(device), slow) << "it has not been long enough";
  p.pass(2 * slow * task_seconds);
  p.loads.forget_after_rest(device, p.now_ns);
  EXPECT_NEAR(p.loads.factor(device), slow / 2, 1e-9);
  EXPECT_LE(p.loads.sure_factor(device), slow / 2);
  p.loads.forget_after_rest(device, p.now_ns);
  EXPECT_NEAR(p.loads.factor(device), slow / 2, 1e-9) << "the rest begins anew";
  p.pass(8 * slow * task_seconds);
  p.loads.forget_after_rest(device, p.now_ns);
  EXPECT_NEAR(p.loads.factor(device), 2, 0.1) << "two halves, as far as it was that fast";
  // It is as slow as it was taken for, and shows that again.
  p.run(16, 16);
  EXPECT_GT(p.loads.factor(device), 6);
}

/// Not a step for each of the billions of such tasks that fit into a rest.
TEST(PlaceLoads, ends_its_look_at_a_rest_after_tasks_that_should_take_nothing) {
  for (const double seconds : {0.0, 1e-12}) {
    Places p;
    p.run(64, 3);
    for (int i = 0; i < 64; ++i) {
      p.add(seconds);
      p.pass(7e-3);
      p.finish(seconds);
    }
    p.pass(9);
    p.loads.forget_after_rest(device, p.now_ns);
    EXPECT_GT(p.loads.factor(device), 0) << seconds;
  }
}

TEST(PlaceLoads, knows_what_a_place_needs_when_it_does_not_pause) {
  Places p;
  p.run(64, 2);
  EXPECT_NEAR(p.loads.least_factor(device), 2, 0.1);
  p.run(1, 100);  // a pause
  p.run(7, 2);
  EXPECT_GT(p.loads.factor(device), 3);
  EXPECT_NEAR(p.loads.least_factor(device), 2, 0.1);
}

TEST(PlaceLoads, learns_nothing_from_a_task_that_went_elsewhere) {
  Places alone;
  Places left;
  for (int i = 0; i < 50; ++i) {
    for (Places* p : {&alone, &left}) {
      p->add();
      p->pass(2 * task_seconds);
    }
    left.add(5);
    left.loads.remove(device, {5}, left.now_ns);
    for (Places* p : {&alone, &left}) p->finish();
  }
  EXPECT_DOUBLE_EQ(left.loads.factor(device), alone.loads.factor(device));
}

TEST(PlaceLoads, remembers_the_best_that_a_place_has_shown_until_that_is_forgotten) {
  Places p;
  EXPECT_FALSE(p.loads.has_shown(device));
  EXPECT_EQ(p.loads.best_factor(device), 1);
  p.run(8, 2);
  EXPECT_TRUE(p.loads.has_shown(device));
  p.run(400, 6);
  EXPECT_NEAR(p.loads.best_factor(device), 2, 0.01);
  EXPECT_NEAR(p.loads.least_factor(device), 6, 0.1);
  p.loads.forget_best(device);
  EXPECT_FALSE(p.loads.has_shown(device));
  EXPECT_NEAR(p.loads.best_factor(device), 6, 0.1);
  p.run(8, 4);
  EXPECT_NEAR(p.loads.best_factor(device), 4, 0.1);
}

TEST(PlaceLoads, keeps_the_factor_within_bounds) {
  Places slow;
  slow.run(400, 1e5);
  EXPECT_DOUBLE_EQ(slow.loads.factor(device), 1000);
  Places fast;
  fast.run(2000, 0);
  EXPECT_DOUBLE_EQ(fast.loads.factor(device), 1e-3);
  Places nothing;
  nothing.add(0);
  nothing.finish(0);
  EXPECT_EQ(nothing.loads.factor(device), 1);
}

TEST(PlaceLoadsDeathTest, misuse_is_named) {
  Places p;
  EXPECT_DEATH(p.loads.remove(device, {1}, 0), "place 1");
  EXPECT_DEATH(p.loads.finish(device, {1}, 0), "place 1");
}

}  // namespace heddle
