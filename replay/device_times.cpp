#include "replay/device_times.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "base/median.hpp"

namespace heddle::replay {
namespace {

/// Start or end of a task; ends come first.
struct Turn {
  std::int64_t time_ns = 0;
  bool begins = false;
  TaskId task;
};

std::vector<Turn> turns_of(const RunTrace& run, const Thread& thread) {
  std::vector<Turn> turns;
  for (TaskId task = thread.first_task; task != thread.last_task; ++task) {
    const Interval& time = run.at(task).time;
    if (time.ns() <= 0) continue;
    turns.push_back({time.start_ns, true, task});
    turns.push_back({time.end_ns, false, task});
  }
  std::ranges::sort(turns, [](const Turn& a, const Turn& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.begins < b.begins;
  });
  return turns;
}

void share_device(const RunTrace& run, const Thread& thread, std::vector<double>& seconds) {
  // Integral of the equal share; a task's cost is its difference between end and start.
  double shared_ns = 0;
  std::int64_t running = 0;
  std::int64_t since_ns = 0;
  for (const Turn& turn : turns_of(run, thread)) {
    if (running > 0) {
      shared_ns += static_cast<double>(turn.time_ns - since_ns) / static_cast<double>(running);
    }
    since_ns = turn.time_ns;
    running += turn.begins ? 1 : -1;
    seconds[static_cast<std::size_t>(turn.task.value())] +=
        (turn.begins ? -1e-9 : 1e-9) * shared_ns;
  }
}

/// Sums over copies: of 1, bytes, seconds, bytes^2, bytes * seconds.
struct Sums {
  double count = 0;
  double bytes = 0;
  double seconds = 0;
  double bytes_2 = 0;
  double bytes_seconds = 0;

  void add(double b, double s) {
    ++count;
    bytes += b;
    seconds += s;
    bytes_2 += b * b;
    bytes_seconds += b * s;
  }
  [[nodiscard]] std::optional<Way> way() const {
    if (bytes <= 0 || seconds <= 0) return std::nullopt;
    const double determinant = count * bytes_2 - bytes * bytes;
    if (determinant > 1e-6 * bytes_2 * count) {
      const double slope = (count * bytes_seconds - bytes * seconds) / determinant;
      const double latency = (seconds - slope * bytes) / count;
      if (slope > 0 && latency >= 0) return Way{latency, 1 / slope};
    }
    return Way{0, bytes / seconds};
  }
};

}  // namespace

std::vector<double> own_seconds(const RunTrace& run) {
  std::vector<double> seconds(run.tasks.size(), 0);
  for (const Thread& thread : run.threads) {
    if (thread.role == Role::device) {
      share_device(run, thread, seconds);
      continue;
    }
    for (TaskId task = thread.first_task; task != thread.last_task; ++task) {
      seconds[static_cast<std::size_t>(task.value())] =
          static_cast<double>(run.at(task).time.ns()) * 1e-9;
    }
  }
  return seconds;
}

std::int32_t side_by_side(const RunTrace& run) {
  std::int32_t most = 0;
  for (const Thread& thread : run.threads) {
    if (thread.role != Role::device) continue;
    std::int32_t running = 0;
    for (const Turn& turn : turns_of(run, thread)) {
      running += turn.begins ? 1 : -1;
      most = std::max(most, running);
    }
  }
  return most;
}

CopyWays copy_ways(const RunTrace& run) {
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<double>>
      seconds;  // by direction and size
  for (const Copy& copy : run.copies) {
    const std::size_t way = copy.from == host_place ? 0 : copy.to == host_place ? 1 : 2;
    seconds[{way, copy.bytes}].push_back(static_cast<double>(copy.time.ns()) * 1e-9);
  }
  std::array<Sums, 3> sums;
  for (const auto& [what, all] : seconds) {
    const double longest = longest_undisturbed(all);
    for (const double each : all) {
      sums.at(what.first).add(static_cast<double>(what.second), std::min(each, longest));
    }
  }
  return {sums[0].way(), sums[1].way(), sums[2].way()};
}

}  // namespace heddle::replay
