#include "apps/simulation/recorded_clock.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "apps/simulation/fitted_times.hpp"
#include "base/error.hpp"
#include "base/median.hpp"
#include "replay/device_times.hpp"
#include "replay/message_begins.hpp"

namespace heddle {

/// Numbers the cases of a walk, and tells which one each item of the program is.
class RecordedTimes::Collector final : public KernelClock, private replay::WalkSink {
 public:
  Collector(const SimulatedFactorization& what, std::vector<Times>& times, bool lends)
      : times_(times), program_(what, *this, lends) {}

  /// By the number of the item in the node's walk, from 1 on, as orders in a trace; -1 where it is
  /// no task.
  [[nodiscard]] std::vector<std::int32_t> kinds_of(NodeId node) {
    items_ = {-1};
    const auto walk = program_.walk(node, *this);
    while (walk->advance()) {
    }
    return std::move(items_);
  }

  [[nodiscard]] double seconds(const KernelCase& what, Runner runner) override {
    const CaseKey key = CaseKey::of(what);
    const auto found = std::ranges::find_if(times_, [&](const Times& one) {
      return one.runner == runner && one.key == key;  // fine tasks of several kernels are alike
    });
    if (found == times_.end()) times_.push_back({key, runner, {}});
    return 1;  // no matter what
  }
  /// Where the times of a kind's tasks are: of whole ones by who ran them, of fine ones by their
  /// number. -1: there are none such.
  [[nodiscard]] std::int32_t time_of(std::int32_t kind, const replay::Task& task) {
    const auto at = static_cast<std::size_t>(kind);
    if (by_kind_.size() <= at) by_kind_.resize(program_.kinds().size());
    if (by_kind_[at].empty()) by_kind_[at] = times_of(replay::TaskKindId(kind));
    const std::size_t whole = task.place == host_place ? 0 : 1;
    const std::size_t number = task.fine > 0 ? 1 + std::size_t{task.fine} : whole;
    return number < by_kind_[at].size() ? by_kind_[at][number] : -1;
  }
  [[nodiscard]] std::string source() const override { return {}; }
  /// Which numbers the matrices have that a task of that kind uses.
  void match(std::int32_t kind, std::span<const replay::Access> accesses,
             std::unordered_map<std::int32_t, protocol::MatrixId>& numbers) const {
    const std::vector<protocol::MatrixId>& here = matrices_[static_cast<std::size_t>(kind)];
    for (std::size_t i = 0; i < std::min(accesses.size(), here.size()); ++i) {
      numbers.try_emplace(accesses[i].tile.matrix, here[i]);
    }
  }

 private:
  void append(replay::TaskKindId kind, std::int32_t /*priority*/,
              std::span<const protocol::Access> accesses) override {
    items_.push_back(kind.value());
    const auto at = static_cast<std::size_t>(kind.value());
    if (matrices_.size() <= at) matrices_.resize(at + 1);
    if (!matrices_[at].empty()) return;
    for (const protocol::Access& access : accesses) matrices_[at].push_back(access.tile.matrix);
  }
  void release(const protocol::Access& /*access*/) override {}
  [[nodiscard]] bool has_room() const override { return true; }
  /// First a whole task's, on a worker and on a device, then those of its fine tasks.
  [[nodiscard]] std::vector<std::int32_t> times_of(replay::TaskKindId id) const {
    const replay::TaskKind& kind = program_.kinds()[static_cast<std::size_t>(id.value())];
    const KernelCase what = program_.case_of(id);
    std::vector<std::int32_t> all{index_of(what, Runner::worker), index_of(what, Runner::device)};
    if (!kind.fine) return all;
    all.front() = -1;  // workers divide it
    for (std::int32_t n = 0; n < kind.fine->graph.size(); ++n) {
      const FineOperands task(kind.fine->graph.task(n));
      all.push_back(index_of(task.what(), Runner::worker));
    }
    return all;
  }
  [[nodiscard]] std::int32_t index_of(const KernelCase& what, Runner runner) const {
    const CaseKey key = CaseKey::of(what);
    const auto found = std::ranges::find_if(
        times_, [&](const Times& one) { return one.runner == runner && one.key == key; });
    return found == times_.end() ? -1 : static_cast<std::int32_t>(found - times_.begin());
  }

  std::vector<Times>& times_;
  SimulatedProgram program_;
  std::vector<std::int32_t> items_;
  std::vector<std::vector<std::int32_t>> by_kind_;
  /// Matrices that a kind's tasks access, the same ones for all tasks of the kind. By kind.
  std::vector<std::vector<protocol::MatrixId>> matrices_;
};

namespace {

/// The task ran that kernel.
bool is_of(const RecordedTimes::Times& times, const replay::Task& task,
           const replay::RunTrace& run) {
  const std::string_view name = run.kernel_of(task);
  const std::string_view kernel = times.key.kernel->name;
  return task.fine > 0 ? name == fmt::format("fine {}", kernel) : name == kernel;
}

using OfWorker = RecordedTimes::OfWorker;

/// Tasks of a worker that take longer as it has just begun: of 6 workers on each of one to four
/// nodes the first one took 1.3 to 2 times as long, the third 1.1, and those from the fifth on 1.0
/// to 1.05, whichever kernel (bench/results/2026-11-26-predictions-64-cores.md).
constexpr std::size_t first_tasks_max = 4;

/// What each of `rows` rows of workers took over what is usual: `row_of` gives a task's row, and
/// `weight_of` the number of usual tasks that a task counts for.
template <typename RowOf, typename WeightOf>
std::vector<double> paces_of(const std::vector<OfWorker>& tasks, const std::vector<double>& seconds,
                             const std::vector<RecordedTimes::Times>& times, std::size_t rows,
                             const RowOf& row_of, const WeightOf& weight_of) {
  std::vector<double> took(rows, 0);
  std::vector<double> usual(rows, 0);
  for (const OfWorker& one : tasks) {
    const std::size_t row = row_of(one);
    took[row] += seconds[one.task];
    usual[row] += times[one.times].usual * weight_of(one);
  }
  for (std::size_t row = 0; row < rows; ++row) {
    took[row] = took[row] > 0 && usual[row] > 0 ? took[row] / usual[row] : 1;
  }
  return took;
}

/// By thread, its number among all workers, those of a node one after the other.
std::vector<std::size_t> worker_numbers(const replay::RunTrace& run) {
  std::vector<std::size_t> workers;
  for (std::size_t thread = 0; thread < run.threads.size(); ++thread) {
    if (run.threads[thread].role == replay::Role::worker) workers.push_back(thread);
  }
  std::ranges::stable_sort(workers, {}, [&](std::size_t at) { return run.threads[at].node; });
  std::vector<std::size_t> numbers(run.threads.size(), 0);
  for (std::size_t i = 0; i < workers.size(); ++i) numbers[workers[i]] = i;
  return numbers;
}

/// The matrices of a run, as a walk of its program numbers them.
using MatrixNumbers = std::unordered_map<std::int32_t, protocol::MatrixId>;

/// On nodes of these paces: fine tasks, which are not told apart, have them too.
std::shared_ptr<replay::Course> course_of(const replay::RunTrace& run, std::int32_t job,
                                          const std::vector<OfWorker>& tasks,
                                          const std::vector<double>& seconds,
                                          const std::vector<RecordedTimes::Times>& times,
                                          const std::vector<double>& paces,
                                          const MatrixNumbers& matrices) {
  auto course = std::make_shared<replay::Course>(run.node_count);
  for (const OfWorker& one : tasks) {
    const replay::Task& task = run.tasks[one.task];
    if (task.fine > 0 || times[one.times].usual <= 0) continue;
    const NodeId node = run.at(task.thread).node;
    const double usual = times[one.times].usual * paces[static_cast<std::size_t>(node.value())];
    course->add_task(node, static_cast<std::int64_t>(task.order),
                     static_cast<float>(seconds[one.task] / usual));
  }
  const std::vector<std::int64_t> begins = replay::message_begins(run, job);
  for (std::size_t i = 0; i < run.messages.size(); ++i) {
    const replay::Message& message = run.messages[i];
    const auto matrix = matrices.find(message.tile.matrix);
    if (message.job != job || message.bytes == 0 || matrix == matrices.end()) continue;
    course->add_message(message.from, message.to, {matrix->second, message.tile.index},
                        message.version,
                        static_cast<double>(message.time.end_ns - begins[i]) * 1e-9);
  }
  return course;
}

}  // namespace

RecordedTimes::RecordedTimes(const replay::RunTrace& run, std::int32_t job,
                             const SimulatedFactorization& what, bool lends,
                             const replay::RuntimeCosts& costs) {
  Collector collector(what, times_, lends);
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> kinds;
  for (const NodeId node : run.nodes) kinds[node.value()] = collector.kinds_of(node);
  const std::vector<double> seconds = replay::own_seconds(run);
  const std::vector<std::size_t> numbers = worker_numbers(run);
  std::vector<OfWorker> of_workers;
  std::vector<std::size_t> begun(run.threads.size(), 0);  // by worker: its tasks are in their order
  MatrixNumbers matrices;
  for (std::size_t i = 0; i < run.tasks.size(); ++i) {
    const replay::Task& task = run.tasks[i];
    if (task.job != job) continue;
    if (task.is_divided()) continue;  // its fine tasks tell
    const std::vector<std::int32_t>& of_node = kinds.at(run.at(task.thread).node.value());
    const std::int32_t item = task.order < of_node.size() ? of_node[task.order] : -1;
    const std::int32_t kind = item < 0 ? -1 : collector.time_of(item, task);
    if (kind < 0 || !is_of(times_[static_cast<std::size_t>(kind)], task, run)) {
      throw Error(ErrorCode::usage,
                  fmt::format("'{}': task {} of job {} is '{}', which the factorization that the "
                              "run tells of has not there; it cannot be replayed",
                              run.source, task.order, job, run.kernel_of(task)));
    }
    Times& times = times_[static_cast<std::size_t>(kind)];
    times.seconds.push_back(static_cast<float>(seconds[i]));
    if (times.runner == Runner::worker) {
      const std::size_t worker = numbers[static_cast<std::size_t>(task.thread.value())];
      of_workers.push_back(
          {i, static_cast<std::size_t>(kind), times.seconds.size() - 1, worker, begun[worker]++});
    }
    if (task.fine == 0) collector.match(item, run.accesses_of(task), matrices);
  }
  const auto worker_count = static_cast<std::size_t>(
      std::ranges::count(run.threads, replay::Role::worker, &replay::Thread::role));
  fit(of_workers, worker_count);
  worker_paces_ = paces_of(
      of_workers, seconds, times_, worker_count, [](const OfWorker& one) { return one.worker; },
      [&](const OfWorker& one) { return start_pace(one); });
  node_paces_ = paces_of(
      of_workers, seconds, times_, static_cast<std::size_t>(run.node_count),
      [&](const OfWorker& one) {
        const NodeId node = run.at(run.tasks[one.task].thread).node;
        return static_cast<std::size_t>(node.value());
      },
      [](const OfWorker& /*one*/) { return 1.0; });
  const auto course = course_of(run, job, of_workers, seconds, times_, node_paces_, matrices);
  for (const OfWorker& one : of_workers) {
    const replay::Task& task = run.tasks[one.task];
    if (lends || task.fine > 0) continue;
    const NodeId node = run.at(task.thread).node;
    const auto others = std::ranges::count_if(run.threads, [&](const replay::Thread& thread) {
      return thread.role == replay::Role::worker && thread.node < node;
    });
    course->add_worker(node, static_cast<std::int64_t>(task.order),
                       static_cast<std::int32_t>(one.worker) - static_cast<std::int32_t>(others));
  }
  const auto add_waking = [&](replay::TaskId id, double seconds_to_begin) {
    const replay::Task& task = run.at(id);
    course->add_waking(run.at(task.thread).node, static_cast<std::int64_t>(task.order),
                       seconds_to_begin);
  };
  for (const replay::WokenTask& one : costs.woken) add_waking(one.task, one.wake_s);
  if (!lends) {
    for (const replay::BegunTask& one : costs.begun) add_waking(one.task, one.seconds);
  }
  for (const replay::Refill& one : costs.refills) {
    course->add_refill(one.node, static_cast<std::int64_t>(one.order), one.seconds);
  }
  course_ = course;
}

double RecordedTimes::start_pace(const OfWorker& one) const {
  return one.before < first_tasks_.size() ? first_tasks_[one.before] : 1;
}

/// Kinds, workers and how many tasks a worker has had before are fitted together: the first tasks
/// of all workers are those of a panel. Of devices, which are alike, the means.
void RecordedTimes::fit(const std::vector<OfWorker>& tasks, std::size_t workers) {
  std::vector<double> longest;
  for (Times& times : times_) {
    longest.push_back(times.seconds.empty() ? 0 : times.longest());
    times.usual_tasks = static_cast<double>(times.seconds.size());
    if (times.seconds.empty() || times.runner == Runner::worker) continue;
    times.usual = std::accumulate(times.seconds.begin(), times.seconds.end(), 0.0) /
                  static_cast<double>(times.seconds.size());
  }
  struct Cell {
    GroupTime time;
    std::size_t before = 0;  ///< first_tasks_max: that many or more
  };
  std::unordered_map<std::size_t, Cell> cells;  // most workers ran few of many cases
  for (const OfWorker& one : tasks) {
    const std::size_t before = std::min(one.before, first_tasks_max);
    const std::size_t row = (one.times * workers + one.worker) * (first_tasks_max + 1) + before;
    Cell& cell = cells[row];
    cell.before = before;
    cell.time.kind = one.times;
    cell.time.group = one.worker;
    cell.time.seconds +=
        std::min(longest[one.times], double{times_[one.times].seconds[one.number]});
    ++cell.time.count;
  }
  FittedTimes fitted;
  constexpr int sweeps = 4;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    std::vector<GroupTime> all;
    all.reserve(cells.size());
    for (const auto& [row, cell] : cells) {
      all.push_back(cell.time);
      if (cell.before < first_tasks_.size()) all.back().count *= first_tasks_[cell.before];
    }
    fitted = fit_times(times_.size(), workers, all);
    std::vector<double> took(first_tasks_max + 1, 0);
    std::vector<double> usual(first_tasks_max + 1, 0);
    for (const auto& [row, cell] : cells) {
      took[cell.before] += cell.time.seconds;
      usual[cell.before] +=
          fitted.usual[cell.time.kind] * fitted.paces[cell.time.group] * cell.time.count;
    }
    if (took.back() <= 0) break;  // nobody has begun more than the first ones
    first_tasks_.resize(first_tasks_max);
    for (std::size_t before = 0; before < first_tasks_max; ++before) {
      first_tasks_[before] = took[before] / usual[before] * usual.back() / took.back();
    }
  }
  for (std::size_t k = 0; k < times_.size(); ++k) {
    if (fitted.usual[k] > 0) times_[k].usual = fitted.usual[k];
  }
  for (const OfWorker& one : tasks) times_[one.times].usual_tasks += start_pace(one) - 1;
}

/// Nobody disturbs a device's kernels.
double RecordedTimes::Times::longest() const {
  if (runner == Runner::device) return std::numeric_limits<double>::infinity();
  return longest_undisturbed({seconds.begin(), seconds.end()});
}

const RecordedTimes::Times* RecordedTimes::find(const KernelCase& what, Runner runner) const {
  const CaseKey key = CaseKey::of(what);
  const auto found = std::ranges::find_if(times_, [&](const Times& one) {
    return !one.seconds.empty() && one.runner == runner && one.key == key;
  });
  return found == times_.end() ? nullptr : &*found;
}

const RecordedTimes::Times* RecordedTimes::nearest(const KernelCase& what, Runner runner) const {
  const Times* best = nullptr;
  double least = 0;
  for (const Times& one : times_) {
    if (one.seconds.empty() || one.runner != runner || one.key.kernel != what.kernel) continue;
    const double distance =
        std::abs(std::log((flops_of(one.key.what()) + 1) / (flops_of(what) + 1)));
    if (best != nullptr && distance >= least) continue;
    best = &one;
    least = distance;
  }
  return best;
}

const RecordedTimes::Times* RecordedTimes::main_case(const Kernel& kernel, Runner runner) const {
  const Times* best = nullptr;
  double most = 0;
  for (const Times& one : times_) {
    if (one.seconds.empty() || one.runner != runner || one.key.kernel != &kernel) continue;
    const double all = one.usual * static_cast<double>(one.seconds.size());
    if (best != nullptr && all <= most) continue;
    best = &one;
    most = all;
  }
  return best;
}

double RecordedTimes::share_of(const Kernel& kernel) const {
  double all = 0;
  double own = 0;
  for (const Times& one : times_) {
    if (one.runner != Runner::worker) continue;
    const double sum = std::accumulate(one.seconds.begin(), one.seconds.end(), 0.0);
    all += sum;
    if (one.key.kernel == &kernel) own += sum;
  }
  return all > 0 ? own / all : 0;
}

RecordedTimes::Rates RecordedTimes::rates(
    const Kernel* kernel, const std::function<double(const KernelCase&)>& seconds) const {
  double flops = 0;
  double took = 0;
  double would_take = 0;
  for (const Times& one : times_) {
    if (one.runner != Runner::worker || one.seconds.empty()) continue;
    if (kernel != nullptr && one.key.kernel != kernel) continue;
    const KernelCase what = one.key.what();
    const double each = seconds(what);
    if (each <= 0) continue;
    flops += flops_of(what) * one.usual_tasks;
    took += std::accumulate(one.seconds.begin(), one.seconds.end(), 0.0);
    would_take += each * one.usual_tasks;
  }
  return took > 0 ? Rates{flops / took, flops / would_take} : Rates{};
}

std::vector<const Kernel*> RecordedTimes::kernels() const {
  std::vector<const Kernel*> all;
  for (const Times& one : times_) {
    if (one.runner != Runner::worker || one.seconds.empty()) continue;
    if (std::ranges::find(all, one.key.kernel) == all.end()) all.push_back(one.key.kernel);
  }
  std::ranges::stable_sort(all, std::greater(), [&](const Kernel* one) { return share_of(*one); });
  return all;
}

double chance_in_ratio(double rate_rehearsed, double rate_recorded,
                       std::span<const double> worker_paces) {
  constexpr std::size_t workers_min = 3;
  if (worker_paces.size() < workers_min || rate_rehearsed <= 0 || rate_recorded <= 0) return 1;
  const auto count = static_cast<double>(worker_paces.size());
  double sum = 0;
  double squares = 0;
  for (const double pace : worker_paces) {
    sum += std::log(pace);
    squares += std::pow(std::log(pace), 2);
  }
  const double variance = std::max(0.0, squares / count - std::pow(sum / count, 2));
  const double expected = 2 * variance / count;
  const double difference = std::log(rate_rehearsed / rate_recorded);
  if (expected <= 0) return 1;
  const double chance = difference * expected / (expected + std::pow(difference, 2));
  return std::exp(-chance);
}

/// Timing all of them would take long.
RecordedClock::KnownRatio RecordedClock::ratio_of_main_case(const Kernel& kernel) {
  const auto [known, is_new] = main_ratios_.try_emplace(&kernel);
  const RecordedTimes::Times* const main = recorded_->main_case(kernel, Runner::worker);
  if (!is_new || main == nullptr) return known->second;
  const KernelCase what = main->key.what();
  known->second = ratio_(what, what, Runner::worker);
  if (known->second.ratio <= 0) known->second = {1, false};
  return known->second;
}

/// What the kernel takes now of what it took. Where it was not rehearsed, what computes most was so
/// beside what is beside it, and slows others as much. What was timed was so beside itself on all
/// workers, while in the run it is beside the kernel that computes most: the smaller the share, the
/// more that one's ratio counts.
double RecordedClock::crowding(const Kernel& kernel, Runner runner) {
  if (!is_other_crowd_ || runner != Runner::worker) return 1;
  const auto [known, is_new] = crowding_.try_emplace(&kernel, 1);
  const std::vector<const Kernel*> kernels = recorded_->kernels();
  if (!is_new || kernels.empty()) return known->second;
  const KnownRatio own = ratio_of_main_case(kernel);
  if (own.is_rehearsed) return known->second = own.ratio;
  const KnownRatio general = ratio_of_main_case(*kernels.front());
  if (general.is_rehearsed) return known->second = general.ratio;
  constexpr double half_share = 0.1;  // for which both count the same
  const double share = recorded_->share_of(kernel);
  known->second = general.ratio * std::pow(own.ratio / general.ratio, share / (share + half_share));
  return known->second;
}

double RecordedClock::seconds(const KernelCase& what, Runner runner) {
  if (const RecordedTimes::Times* const known = recorded_->find(what, runner)) {
    return known->usual * crowding(*what.kernel, runner);
  }
  ++estimated_;
  const RecordedTimes::Times* const like = recorded_->nearest(what, runner);
  if (like == nullptr) return now_->seconds(what, runner);
  const KernelCase near = like->key.what();
  if (const double ratio = ratio_(what, near, runner).ratio; ratio > 0) {
    return like->usual * ratio;
  }
  return flops_of(near) > 0 ? like->usual * flops_of(what) / flops_of(near) : like->usual;
}

std::vector<float> RecordedClock::spread(const KernelCase& what, Runner runner) const {
  const RecordedTimes::Times* like = recorded_->find(what, runner);
  if (like == nullptr) like = recorded_->nearest(what, runner);
  if (like == nullptr) return {};
  std::vector<float> shares = like->seconds;
  const auto usual = static_cast<float>(like->usual);
  const auto longest = static_cast<float>(like->longest());
  if (usual <= 0) return {};
  for (float& share : shares) share = std::min(share, longest) / usual;
  return shares;
}

std::string RecordedClock::source() const {
  std::string text = "as the run had them";
  if (estimated_ > 0) text += fmt::format("; {} shapes that it had not are scaled", estimated_);
  if (crowding_.empty()) return text;
  double least = crowding_.begin()->second;
  double most = least;
  for (const auto& [kernel, factor] : crowding_) {
    least = std::min(least, factor);
    most = std::max(most, factor);
  }
  if (least == 1 && most == 1) return text;
  return text + fmt::format(", times {:.2f} to {:.2f} for more or fewer beside", least, most);
}

}  // namespace heddle
