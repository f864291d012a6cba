#include "apps/tuning/timing.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/median.hpp"

namespace heddle::tuning {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int timed_runs_min = 2;

/// The same kernel on the same shape.
bool is_same_case(const KernelTime& x, const KernelTime& y) {
  return x.kernel == y.kernel && x.rows == y.rows && x.columns == y.columns && x.inner == y.inner;
}

/// Median seconds of a run on this thread.
double time_here(const Work& work, double seconds) {
  std::vector<double> times;
  const Clock::time_point deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                        std::chrono::duration<double>(seconds));
  for (int run = 0; run <= timed_runs_min || Clock::now() < deadline; ++run) {
    work.prepare(run);
    const Clock::time_point begin = Clock::now();
    work.kernel(run);
    const double lasted = std::chrono::duration<double>(Clock::now() - begin).count();
    if (run > 0) times.push_back(lasted);  // the first one finds cold caches
  }
  return median(times);
}

}  // namespace

std::vector<double> times_on(const Workers& workers, std::int32_t count,
                             const std::function<Work(std::int32_t worker)>& work_of,
                             double seconds) {
  std::vector<double> medians(static_cast<std::size_t>(count));
  std::barrier start(count);
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (std::int32_t w = 0; w < count; ++w) {
    threads.emplace_back([&, w] {
      const auto index = static_cast<std::size_t>(w);
      workers.pin(w);
      const Work work = work_of(w);
      start.arrive_and_wait();
      medians[index] = time_here(work, seconds);
    });
  }
  threads.clear();
  return medians;
}

double time_on(const Workers& workers, std::int32_t count,
               const std::function<Work(std::int32_t worker)>& work_of, double seconds) {
  double rate = 0;
  for (const double each : times_on(workers, count, work_of, seconds)) rate += 1 / each;
  return count / rate;
}

KernelTimes settled_times(std::span<const KernelTimes> rounds) {
  KernelTimes settled;
  std::vector<std::vector<double>> all;  // microseconds of each of `settled`, by round; 0: none
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    for (const KernelTime& time : rounds[r]) {
      const auto found = std::ranges::find_if(
          settled, [&](const KernelTime& known) { return is_same_case(known, time); });
      const auto index = static_cast<std::size_t>(found - settled.begin());
      if (found == settled.end()) {
        settled.push_back(time);
        all.emplace_back(rounds.size());
      }
      all[index][r] = time.microseconds;
    }
  }
  // Middle of what is given; of a time, at paces of the rounds.
  const auto middle = [&](const std::vector<double>& of_rounds, const std::vector<double>& paces) {
    std::vector<double> given;
    for (std::size_t r = 0; r < of_rounds.size(); ++r) {
      if (of_rounds[r] > 0) given.push_back(of_rounds[r] / paces[r]);
    }
    return median(std::move(given));
  };
  const std::vector<double> alike(rounds.size(), 1.0);
  std::vector<double> paces;  // how much longer than usual things took in a round
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    std::vector<double> ratios;
    for (const std::vector<double>& of_rounds : all) {
      if (of_rounds[r] > 0) ratios.push_back(of_rounds[r] / middle(of_rounds, alike));
    }
    paces.push_back(ratios.empty() ? 1 : median(std::move(ratios)));
  }
  const double fastest = paces.empty() ? 1 : *std::ranges::min_element(paces);
  for (std::size_t i = 0; i < settled.size(); ++i) {
    settled[i].microseconds = middle(all[i], paces) * fastest;
  }
  return settled;
}

double ratio_by_turns(const std::function<double()>& first, const std::function<double()>& second) {
  std::vector<double> ratios;
  for (int pair = 0; pair < ratio_pairs; ++pair) {
    const bool second_begins = pair % 2 == 1;
    const double before = second_begins ? second() : 0;
    const double of_first = first();
    const double of_second = second_begins ? before : second();
    ratios.push_back(of_first / of_second);
  }
  return median(std::move(ratios));
}

}  // namespace heddle::tuning
