#include "apps/tuning/timing.hpp"

#include <barrier>
#include <chrono>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/median.hpp"

namespace heddle::tuning {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int timed_runs_min = 2;

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
      if (!workers.cores.empty()) {
        pin_current_thread(std::span(workers.cores).subspan(index, 1));
      }
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
  const std::vector<double> medians = times_on(workers, count, work_of, seconds);
  return std::accumulate(medians.begin(), medians.end(), 0.0) / count;
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
