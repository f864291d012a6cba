#include "apps/simulation/rehearsed_turn.hpp"

#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace heddle {
namespace {

/// Turns of workers of these paces, whose tasks of two kinds take 1 and 5 s times what is drawn, of
/// that deviation (log-normal); the second turn is slower by half.
std::vector<RehearsedTurn> turns_of(const std::vector<double>& paces, int tasks, double deviation,
                                    unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<RehearsedTurn> turns;
  for (const double slower : {1.0, 1.5}) {
    RehearsedTurn& turn = turns.emplace_back();
    for (const double pace : paces) {
      std::vector<RehearsedTime>& worker = turn.emplace_back(2);
      for (int t = 0; t < tasks; ++t) {
        worker[0].add_task(1 * slower * pace * std::exp(normal(random)));
        worker[1].add_task(5 * slower * pace * std::exp(normal(random)));
      }
    }
  }
  return turns;
}

FittedTimes fitted_of(const std::vector<RehearsedTurn>& turns) {
  std::vector<GroupTime> times;
  for (std::size_t t = 0; t < turns.size(); ++t) {
    const std::vector<RehearsedTime> sums = sums_of(turns[t], 2);
    for (std::size_t kind = 0; kind < sums.size(); ++kind) {
      times.push_back({kind, t, sums[kind].seconds, static_cast<double>(sums[kind].count)});
    }
  }
  return fit_times(2, turns.size(), times);
}

double deviation_of(const std::vector<double>& paces) {
  double mean = 0;
  for (const double pace : paces) mean += std::log(pace) / static_cast<double>(paces.size());
  double squares = 0;
  for (const double pace : paces) squares += std::pow(std::log(pace) - mean, 2);
  return std::sqrt(squares / static_cast<double>(paces.size() - 1));
}

}  // namespace

TEST(RehearsedTurn, sums_are_those_of_all_workers) {
  const RehearsedTurn turn{{{3, 5, 2}, {}}, {{4, 16, 1}, {1, 1, 1}}};
  const std::vector<RehearsedTime> sums = sums_of(turn, 2);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].seconds, 7);
  EXPECT_EQ(sums[0].squares, 21);
  EXPECT_EQ(sums[0].count, 3);
  EXPECT_EQ(sums[1].count, 1);
}

TEST(WorkerPaces, are_told_by_turn_beside_the_turns_pace) {
  const std::vector<double> paces{0.8, 1.0, 1.2};
  const std::vector<RehearsedTurn> turns = turns_of(paces, 10, 0);
  const auto told = worker_paces(turns, fitted_of(turns));
  ASSERT_EQ(told.size(), 2U);
  for (const std::vector<double>& turn : told) {
    ASSERT_EQ(turn.size(), paces.size());
    for (std::size_t w = 0; w < paces.size(); ++w) EXPECT_NEAR(turn[w], paces[w], 1e-9);
  }
}

/// What these paces seem to differ by, on average over many turns.
double seen_deviation(const std::vector<double>& paces, int tasks, double deviation) {
  double sum = 0;
  int count = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const std::vector<RehearsedTurn> turns = turns_of(paces, tasks, deviation, seed);
    for (const std::vector<double>& turn : worker_paces(turns, fitted_of(turns))) {
      sum += deviation_of(turn);
      ++count;
    }
  }
  return sum / count;
}

/// Of twelve tasks of each kind that differ by a third, means differ by 0.07.
TEST(WorkerPaces, of_like_workers_are_alike_though_their_tasks_differ) {
  EXPECT_LT(seen_deviation(std::vector<double>(16, 1.0), 12, 0.3), 0.035);
  std::vector<double> unlike(16, 0.8);
  for (std::size_t w = 0; w < unlike.size(); w += 2) unlike[w] = 1.2;
  EXPECT_NEAR(seen_deviation(unlike, 12, 0.3), deviation_of(unlike), 0.02);
}

TEST(WorkerPaces, are_of_workers_that_ran_tasks) {
  const std::vector<RehearsedTurn> turns{{{{2, 2, 2}}, {{}}}, {{{}}, {{}}}};
  const FittedTimes fitted = fit_times(1, 2, {{0, 0, 2, 2}, {0, 1, 0, 0}});
  const auto told = worker_paces(turns, fitted);
  ASSERT_EQ(told.size(), 1U) << "nothing ran in the other turn";
  EXPECT_EQ(told[0], std::vector<double>{1.0});
}

}  // namespace heddle
