#include "replay/bounds.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace heddle::replay {
namespace {

/// Number of tail thresholds to try; with more distinct tails, these are quantiles. Any choice
/// gives a valid bound.
constexpr std::size_t thresholds_max = 4096;

/// Cost of each task: time of its worker, or share of its device, in ns.
class Costs {
 public:
  explicit Costs(const RunTrace& run) : run_(run), shares_(run.tasks.size(), 0) {
    for (const Thread& thread : run.threads) {
      if (thread.role == Role::device) share_out(thread);
    }
  }

  [[nodiscard]] double of(TaskId task) const {
    const Task& ran = run_.at(task);
    if (run_.at(ran.thread).role != Role::device) return static_cast<double>(ran.time.ns());
    return shares_[static_cast<std::size_t>(task.value())];
  }

 private:
  struct Step {
    std::int64_t time_ns = 0;
    bool begins = false;
    TaskId task;
  };

  /// Sweeps over a device's time. `all` is the integral of the equal share; a task's cost is its
  /// difference between the task's end and start.
  void share_out(const Thread& thread) {
    std::vector<Step> steps;
    for (TaskId task = thread.first_task; task != thread.last_task; ++task) {
      steps.push_back({run_.at(task).time.start_ns, true, task});
      steps.push_back({run_.at(task).time.end_ns, false, task});
    }
    std::ranges::sort(steps, {}, [](const Step& step) {
      return std::pair(step.time_ns, !step.begins);  // an empty task begins before it ends
    });
    double all = 0;
    std::int64_t running = 0;
    std::int64_t now = 0;
    for (const Step& step : steps) {
      if (running > 0) {
        all += static_cast<double>(step.time_ns - now) / static_cast<double>(running);
      }
      now = step.time_ns;
      running += step.begins ? 1 : -1;
      double& share = shares_[static_cast<std::size_t>(step.task.value())];
      share = step.begins ? all : all - share;
    }
  }

  const RunTrace& run_;
  std::vector<double> shares_;  ///< by task; only tasks on devices
};

/// Resources that tasks stay on: the workers of a node, or a device.
struct Team {
  std::int64_t members = 0;
  double cost_ns = 0;
  struct Member {
    std::int64_t head_ns = 0;
    std::int64_t tail_ns = 0;
    double cost_ns = 0;  ///< of one member's time
  };
  std::vector<Member> tasks{};
};

/// Sums of costs of tasks by tail threshold, with the maximum of "threshold + cost of tasks with at
/// least that tail".
class TailSums {
 public:
  explicit TailSums(std::vector<std::int64_t> thresholds) : thresholds_(std::move(thresholds)) {
    while (leaves_ < thresholds_.size()) leaves_ *= 2;
    sums_.assign(2 * leaves_, {});
  }

  void add(std::int64_t tail_ns, double cost_ns) {
    const auto above = std::ranges::upper_bound(thresholds_, tail_ns);
    const auto at = static_cast<std::size_t>(above - thresholds_.begin()) - 1;
    std::size_t node = leaves_ + at;
    sums_[node].cost_ns += cost_ns;
    sums_[node].best_ns = static_cast<double>(thresholds_[at]) + sums_[node].cost_ns;
    for (node /= 2; node > 0; node /= 2) {
      const Sum& low = sums_[2 * node];
      const Sum& high = sums_[2 * node + 1];
      sums_[node].cost_ns = low.cost_ns + high.cost_ns;
      sums_[node].best_ns = std::max(high.best_ns, low.best_ns + high.cost_ns);
    }
  }
  [[nodiscard]] double best_ns() const { return sums_[1].best_ns; }

 private:
  struct Sum {
    double cost_ns = 0;
    double best_ns = -std::numeric_limits<double>::infinity();  ///< no such tasks
  };

  std::vector<std::int64_t> thresholds_;  ///< ascending
  std::size_t leaves_ = 1;                ///< a power of two; node i has children 2 i and 2 i + 1
  std::vector<Sum> sums_;
};

/// Distinct tails, or as many quantiles of them, including the smallest.
std::vector<std::int64_t> thresholds_of(const std::vector<Team::Member>& tasks) {
  std::vector<std::int64_t> tails;
  tails.reserve(tasks.size());
  for (const Team::Member& task : tasks) tails.push_back(task.tail_ns);
  std::ranges::sort(tails);
  tails.erase(std::unique(tails.begin(), tails.end()), tails.end());
  if (tails.size() <= thresholds_max) return tails;
  std::vector<std::int64_t> some;
  for (std::size_t i = 0; i < thresholds_max; ++i) {
    some.push_back(tails[i * tails.size() / thresholds_max]);
  }
  return some;
}

/// Tasks with head >= h and tail >= s run between h and the end minus s: h + s + sum of their costs
/// / members is a bound for each h and s. Sweeps h from the largest down; TailSums keeps the best
/// s.
double mixed_ns(Team& team) {
  TailSums sums(thresholds_of(team.tasks));
  std::ranges::sort(team.tasks, std::greater{}, &Team::Member::head_ns);
  double best = 0;
  for (const Team::Member& task : team.tasks) {
    sums.add(task.tail_ns, task.cost_ns);
    best = std::max(best, static_cast<double>(task.head_ns) + sums.best_ns());
  }
  return best;
}

/// Sums over a kernel's tasks, by kind of thread.
struct KernelSums {
  std::array<double, 2> tasks{};
  std::array<double, 2> seconds{};

  [[nodiscard]] KernelWork work() const {
    KernelWork work{tasks[0] + tasks[1]};
    if (tasks[0] > 0) work.worker_s = seconds[0] / tasks[0];
    if (tasks[1] > 0) work.device_s = seconds[1] / tasks[1];
    return work;
  }
};

}  // namespace

/// The optimal fractional assignment: all work starts on the workers and moves to the devices in
/// the order of worker_s / device_s, until both finish together or nothing is left to move.
///
/// Optimality (exchange argument): take another assignment with the same device time. It has a part
/// of a kernel a on the devices and a part of a kernel b with a larger ratio on the workers.
/// Exchange parts of equal device time t: the workers gain t ratio(a) and lose t ratio(b), which is
/// more. So no assignment with this device time has less worker time. Less device time means more
/// worker time, and vice versa; if both finish together, neither improves the maximum.
double area_bound(std::span<const KernelWork> kernels, std::int64_t workers, std::int64_t devices) {
  double workers_s = 0;
  double devices_s = 0;
  std::vector<KernelWork> movable;
  for (const KernelWork& kernel : kernels) {
    if (kernel.worker_s) {
      workers_s += kernel.tasks * *kernel.worker_s;
      if (kernel.device_s) movable.push_back(kernel);
    } else {
      devices_s += kernel.tasks * kernel.device_s.value_or(0);
    }
  }
  std::ranges::sort(movable, std::greater{}, [](const KernelWork& kernel) {
    const bool is_free = *kernel.device_s <= 0;
    return is_free ? std::numeric_limits<double>::infinity() : *kernel.worker_s / *kernel.device_s;
  });
  const auto w = static_cast<double>(workers);
  const auto d = static_cast<double>(devices);
  for (const KernelWork& kernel : movable) {
    // After moving x tasks both finish together at this x.
    const double gain = *kernel.worker_s * d + *kernel.device_s * w;
    const double even = gain > 0 ? (workers_s * d - devices_s * w) / gain : kernel.tasks;
    const double moved = std::clamp(even, 0.0, kernel.tasks);
    workers_s -= moved * *kernel.worker_s;
    devices_s += moved * *kernel.device_s;
    if (moved < kernel.tasks) break;
  }
  return std::max(workers > 0 ? workers_s / w : 0, devices > 0 ? devices_s / d : 0);
}

Bounds bounds_of(const RunTrace& run, const Graph& graph, std::span<const TaskId> path,
                 std::span<const std::int64_t> heads, std::span<const std::int64_t> tails) {
  const Costs costs(run);
  // Teams: a node's workers, and each device.
  std::map<std::pair<NodeId, std::int32_t>, Team> teams;
  std::vector<Team*> team_of;
  std::array<std::int64_t, 2> members{};
  for (std::size_t i = 0; i < run.threads.size(); ++i) {
    const Thread& thread = run.threads[i];
    const bool is_device = thread.role == Role::device;
    if (!is_device && thread.role != Role::worker) {
      team_of.push_back(nullptr);
      continue;
    }
    Team& team = teams[{thread.node, is_device ? static_cast<std::int32_t>(i) : -1}];
    ++team.members;
    ++members.at(is_device ? 1 : 0);
    team_of.push_back(&team);
  }
  std::map<trace::NameId, KernelSums> kernels;
  for (std::size_t i = 0; i < graph.tasks().size(); ++i) {
    const Task& task = run.at(graph.tasks()[i]);
    Team* const team = team_of[static_cast<std::size_t>(task.thread.value())];
    if (team == nullptr) continue;
    const double cost = costs.of(graph.tasks()[i]);
    const double one = cost / static_cast<double>(team->members);
    team->cost_ns += one;
    team->tasks.push_back({heads[i], tails[i], one});
    const std::size_t kind = run.at(task.thread).role == Role::device ? 1 : 0;
    KernelSums& sums = kernels[task.kernel];
    sums.tasks.at(kind) += 1;
    sums.seconds.at(kind) += cost * 1e-9;
  }
  Bounds bounds;
  std::vector<KernelWork> work;
  work.reserve(kernels.size());
  for (const auto& [kernel, sums] : kernels) work.push_back(sums.work());
  bounds.area_s = area_bound(work, members[0], members[1]);
  for (const TaskId task : path) {
    bounds.critical_path_s += static_cast<double>(run.at(task).time.ns()) * 1e-9;
  }
  for (auto& [key, team] : teams) {
    bounds.placed_s = std::max(bounds.placed_s, team.cost_ns * 1e-9);
    if (!team.tasks.empty()) bounds.mixed_s = std::max(bounds.mixed_s, mixed_ns(team) * 1e-9);
  }
  // The largest bound, up to rounding and the path's last part: a task counts with its whole time
  // on one member.
  bounds.mixed_s =
      std::max({bounds.mixed_s, bounds.area_s, bounds.placed_s, bounds.critical_path_s});
  return bounds;
}

}  // namespace heddle::replay
