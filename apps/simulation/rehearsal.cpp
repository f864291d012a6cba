#include "apps/simulation/rehearsal.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fmt/core.h>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "apps/tuning/operands.hpp"
#include "apps/tuning/timing.hpp"
#include "base/assert.hpp"
#include "base/companions.hpp"
#include "base/futex.hpp"
#include "base/median.hpp"
#include "base/memory_block.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

/// What begins in the first part of a turn does not count: it finds caches with another
/// rehearsal's tiles, and a clock as it was with another number of cores at work.
constexpr double warming_share = 0.4;
/// A turn takes as long as a worker takes for `tasks_min` tasks, and as long as all tiles can be
/// used in the part of it that does not count, within these bounds: what a factorization has
/// used a panel ago is in the caches, and tiles of which turns before have left nothing there are
/// slower (QR of 4000 on one node of 6 workers needs 60 ms for a panel's updates, and reached 34
/// GFLOP/s a worker in turns of 90 where its runs had 44).
constexpr int tasks_min = 3;
constexpr double seconds_min = 0.09;
constexpr double seconds_max = 0.3;
/// So small that products of any number of them stay in range, and beside a diagonal of ones make
/// no difference, and far above denormal ones.
constexpr double scale = 1e-6;

void set_ones(double* tile, const RehearsalPlan::Ones& ones) {
  for (std::int64_t i = 0; i < ones.count; ++i) tile[ones.first + i * ones.step] = 1;
}

/// A number that one thread moves and others read, on a line of its own.
struct alignas(64) Position {
  std::atomic<std::int32_t> value{0};
};

/// One process's part. In this round through the tasks [0, next) have been taken, and copies
/// [0, copied) are there. Whoever has taken a task runs it, even when the turn is over: others are
/// to find what it writes.
class Stage {
 public:
  /// Uses no memory of the tiles before the first turn.
  /// `has_core`: the thread that copies has one; otherwise workers copy what they need next, as a
  /// progress thread does on a worker's core.
  Stage(const RehearsalPlan& plan, const tuning::Workers& workers,
        const tuning::NormalValues& normal, bool has_core)
      : plan_(plan),
        workers_(workers),
        normal_(normal),
        has_core_(has_core),
        at_(static_cast<std::size_t>(workers.count)),
        ended_(plan.tasks.size()),
        memory_(allocate_memory_block(
            static_cast<std::size_t>(std::max<std::int64_t>(1, plan.elements)) * sizeof(double))),
        source_(static_cast<std::size_t>(largest_copy(plan)), scale) {}

  /// By worker, and by kind of the plan's.
  [[nodiscard]] RehearsedTurn turn(double seconds) {
    RehearsedTurn of_workers(static_cast<std::size_t>(workers_.count),
                             std::vector<RehearsedTime>(plan_.kinds.size()));
    if (plan_.tasks.empty()) return of_workers;
    const auto after = [begin = Clock::now()](double passed) {
      return begin +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(passed));
    };
    const Turn turn{after(warming_share * seconds), after(seconds)};
    is_over_.store(false, std::memory_order_relaxed);
    const tuning::BesideWorkers beside(workers_);
    std::barrier together(workers_.count + 1);
    {
      std::vector<std::jthread> threads;
      threads.reserve(of_workers.size());
      for (std::int32_t w = 0; w < workers_.count; ++w) {
        threads.emplace_back([&, w] {
          const auto index = static_cast<std::size_t>(w);
          workers_.pin(w);
          if (!is_filled_) fill_part(w);
          work(w, turn, together, of_workers[index]);
        });
      }
      bring(together);
    }
    is_filled_ = true;
    return of_workers;
  }

  [[nodiscard]] double largest_number() const {
    double most = 0;
    for (std::int64_t i = 0; i < plan_.elements; ++i) {
      const double size = std::abs(elements()[i]);
      most = std::isnan(size) ? std::numeric_limits<double>::infinity() : std::max(most, size);
    }
    return most;
  }

 private:
  struct Turn {
    Clock::time_point counts_from;
    Clock::time_point until;
  };

  static std::int64_t largest_copy(const RehearsalPlan& plan) {
    std::int64_t most = 0;
    for (const RehearsalPlan::Copy& copy : plan.copies) most = std::max(most, copy.elements);
    return most;
  }
  [[nodiscard]] double* elements() const { return reinterpret_cast<double*>(memory_.get()); }

  void fill_part(std::int32_t worker) {
    const std::int64_t from = plan_.elements * worker / workers_.count;
    const std::int64_t to = plan_.elements * (worker + 1) / workers_.count;
    const std::span<const double> normal = normal_.values();
    const auto period = std::ssize(normal);
    for (std::int64_t i = from; i < to; ++i) {
      elements()[i] = scale * normal[static_cast<std::size_t>(i % period)];
    }
  }

  /// Rounds through the tasks until the time is over. All threads meet between two rounds, and
  /// agree there whether there is another one.
  ///
  /// The rounds end: the first of the tasks that were taken and have not ended waits for no other
  /// task, and its copies wait only for tasks before it. An idle time before it ends by the clock.
  /// So that task ends, and then the next one.
  void work(std::int32_t worker, const Turn& turn, std::barrier<>& together,
            std::vector<RehearsedTime>& taken) {
    const auto count = static_cast<std::int32_t>(plan_.tasks.size());
    std::atomic<std::int32_t>& at = at_[static_cast<std::size_t>(worker)].value;
    together.arrive_and_wait();  // what tasks read is filled
    for (int run = 0;;) {
      const std::int32_t round = round_;
      while (!is_over_.load(std::memory_order_relaxed)) {
        const std::int32_t number = next_.fetch_add(1, std::memory_order_relaxed);
        // Released: what this worker's last task has used may be overwritten.
        at.store(std::min(number, count), std::memory_order_release);
        if (number >= count) break;
        const RehearsalPlan::Task& task = plan_.tasks[static_cast<std::size_t>(number)];
        stay_idle(task.idle_s);
        wait_for_copies(task.copies);
        wait_for_tasks(task);
        const CaseKey& kind = plan_.kinds[static_cast<std::size_t>(task.kind)];
        if (kind.kernel == &kernel::potrf) set_ones(elements() + task.at.front(), ones_of(kind, 0));
        const Clock::time_point begin = Clock::now();
        run_task(kind, task);
        const Clock::time_point end = Clock::now();
        // Released: what the task has written may be used.
        ended_[static_cast<std::size_t>(number)].store(round, std::memory_order_release);
        if (begin >= turn.counts_from) {
          ++run;
          taken[static_cast<std::size_t>(task.kind)].add_task(
              std::chrono::duration<double>(end - begin).count());
        }
        if (end >= turn.until && run >= tasks_min) is_over_.store(true, std::memory_order_relaxed);
      }
      // Whoever brings copies waits for this worker no more.
      at.store(count, std::memory_order_release);
      together.arrive_and_wait();
      const bool ends = is_over_.load(std::memory_order_relaxed);
      together.arrive_and_wait();  // the copying thread has begun a new round, if there is one
      if (ends) return;
    }
  }

  /// As a worker that waits for tasks: it looks for a moment, then its core sleeps.
  static void stay_idle(double seconds) {
    constexpr auto looks = std::chrono::microseconds(10);
    constexpr auto wakes_in = std::chrono::microseconds(50);  // so early it is to wake
    const Clock::time_point begin = Clock::now();
    const Clock::time_point end =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    while (Clock::now() < std::min(end, begin + looks)) relax_cpu();
    if (end > begin + looks + wakes_in) std::this_thread::sleep_until(end - wakes_in);
    while (Clock::now() < end) relax_cpu();
  }

  void run_task(const CaseKey& kind, const RehearsalPlan::Task& task) {
    std::array<TileView, protocol::accesses_max> views;
    for (std::size_t i = 0; i < kind.operand_count; ++i) {
      const OperandShape& shape = kind.operands.at(i);
      views.at(i) = {elements() + task.at.at(i), shape.rows, shape.columns,
                     std::max<std::int64_t>(1, shape.rows)};
    }
    const KernelCase what = kind.what();
    const std::int64_t info =
        kind.kernel->host({std::span(views).first(kind.operand_count), what.parameters});
    HEDDLE_CHECK(info == 0, "{} gives info {}", kind.kernel->name, info);
  }

  /// The thread of the turn's caller: copies, where it has a core, until the workers end a round.
  void bring(std::barrier<>& together) {
    const auto count = static_cast<std::int32_t>(plan_.tasks.size());
    together.arrive_and_wait();
    for (bool ends = false; !ends;) {
      if (has_core_) copy_all();
      together.arrive_and_wait();
      ends = is_over_.load(std::memory_order_relaxed);
      if (next_.load(std::memory_order_relaxed) >= count) {
        next_.store(0, std::memory_order_relaxed);
        copied_.store(0, std::memory_order_relaxed);
        ++round_;
      }
      for (Position& position : at_) {
        position.value.store(next_.load(std::memory_order_relaxed), std::memory_order_relaxed);
      }
      together.arrive_and_wait();
    }
  }

  /// All tasks up to that one have ended. Acquired: what they have used may be overwritten.
  [[nodiscard]] bool are_past(std::int32_t task) const {
    return std::ranges::all_of(at_, [&](const Position& worker) {
      return worker.value.load(std::memory_order_acquire) > task;
    });
  }

  /// One more copy, by one thread at a time; false: somebody still uses its block.
  bool copy_next() {
    const std::int32_t next = copied_.load(std::memory_order_relaxed);
    const RehearsalPlan::Copy& copy = plan_.copies[static_cast<std::size_t>(next)];
    if (!are_past(copy.behind)) return false;
    std::copy_n(source_.data(), copy.elements, elements() + copy.at);
    set_ones(elements() + copy.at, copy.ones);
    copied_.store(next + 1, std::memory_order_release);
    return true;
  }

  /// Nobody waits with the lock: a block's last user may be waiting for an earlier copy.
  bool try_copy_next() {
    const std::unique_lock lock(copying_, std::try_to_lock);
    return lock.owns_lock() && copied_.load(std::memory_order_relaxed) < std::ssize(plan_.copies) &&
           copy_next();
  }

  /// All that there are, until no worker takes more tasks. Like a progress thread, which has a core
  /// and looks without rest, but for a yield between looks (MpiProgress::wait): the
  /// processor's pause would leave more of its core to a hardware thread beside it.
  void copy_all() {
    if (plan_.copies.empty()) return;
    const auto last = static_cast<std::int32_t>(plan_.tasks.size()) - 1;
    while (!are_past(last)) {
      const bool is_through = copied_.load(std::memory_order_relaxed) == std::ssize(plan_.copies);
      if (is_through || !copy_next()) std::this_thread::yield();
    }
  }

  void wait_for_copies(std::int32_t copies) {
    while (copied_.load(std::memory_order_acquire) < copies) {
      if (has_core_ || !try_copy_next()) std::this_thread::yield();
    }
  }

  void wait_for_tasks(const RehearsalPlan::Task& task) const {
    for (std::int32_t i = task.before_first; i < task.before_last; ++i) {
      const std::atomic<std::int32_t>& ended =
          ended_[static_cast<std::size_t>(plan_.before[static_cast<std::size_t>(i)])];
      while (ended.load(std::memory_order_acquire) != round_) std::this_thread::yield();
    }
  }

  const RehearsalPlan& plan_;
  const tuning::Workers& workers_;
  const tuning::NormalValues& normal_;
  bool has_core_;
  std::mutex copying_;        ///< of workers that copy
  std::vector<Position> at_;  ///< by worker: it uses what no task before this one does
  std::vector<std::atomic<std::int32_t>> ended_;  ///< by task: the round in which it last did
  std::int32_t round_ = 1;                        ///< written while all threads have met
  std::atomic<std::int32_t> next_{0};
  std::atomic<std::int32_t> copied_{0};
  std::atomic<bool> is_over_{false};
  bool is_filled_ = false;
  MemoryBlock memory_;
  std::vector<double> source_;
};

}  // namespace

class Rehearsal::Parts {
 public:
  explicit Parts(RehearsalCast cast) : cast_(std::move(cast)) {
    HEDDLE_CHECK(!cast_.plans.empty() && cast_.plans.size() == cast_.processes.size(),
                 "{} plans for {} processes", cast_.plans.size(), cast_.processes.size());
    for (const RehearsalPlan& plan : cast_.plans) {
      std::vector<std::size_t>& numbers = numbers_.emplace_back();
      for (const CaseKey& kind : plan.kinds) numbers.push_back(number_of(kind));
    }
    for (std::size_t p = 1; p < cast_.plans.size(); ++p) {
      others_.add([this, p](const Conversation& parent) {
        Stage stage(cast_.plans[p], cast_.processes[p], normal_, cast_.copies_have_cores);
        for (double seconds = 0; parent.receive_value(seconds, Conversation::always);) {
          std::vector<RehearsedTime> taken;
          for (const std::vector<RehearsedTime>& worker : stage.turn(seconds)) {
            taken.insert(taken.end(), worker.begin(), worker.end());
          }
          taken.emplace_back();  // no message is empty: that is how an end looks
          if (!parent.send(std::as_bytes(std::span(taken)))) return;
        }
      });
    }
    here_.emplace(cast_.plans.front(), cast_.processes.front(), normal_, cast_.copies_have_cores);
  }

  [[nodiscard]] const std::vector<CaseKey>& kinds() const { return kinds_; }
  [[nodiscard]] double largest_number() const { return here_->largest_number(); }
  [[nodiscard]] Pass pass() const {
    Pass most;
    for (std::size_t p = 0; p < cast_.plans.size(); ++p) {
      const RehearsalPlan& plan = cast_.plans[p];
      const double workers = cast_.processes[p].count;
      double idle_s = 0;
      for (std::int32_t t = 0; t < plan.pass; ++t) {
        idle_s += plan.tasks[static_cast<std::size_t>(t)].idle_s;
      }
      most.tasks = std::max(most.tasks, plan.pass / workers);
      most.idle_s = std::max(most.idle_s, idle_s / workers);
    }
    return most;
  }

  [[nodiscard]] RehearsedTurn turn(double seconds) {
    others_.tell_all(seconds);
    RehearsedTurn all;
    for (const std::vector<RehearsedTime>& worker : here_->turn(seconds)) add(0, worker, all);
    for (std::size_t p = 1; p < cast_.plans.size(); ++p) {
      const std::size_t kinds = cast_.plans[p].kinds.size();
      const auto workers = static_cast<std::size_t>(cast_.processes[p].count);
      std::vector<RehearsedTime> taken(workers * kinds + 1);
      others_.hear(p - 1, std::as_writable_bytes(std::span(taken)));
      for (std::size_t w = 0; w < workers; ++w) {
        add(p, std::span(taken).subspan(w * kinds, kinds), all);
      }
    }
    return all;
  }

 private:
  [[nodiscard]] std::size_t number_of(const CaseKey& kind) {
    const auto found = std::ranges::find(kinds_, kind);
    const auto at = static_cast<std::size_t>(found - kinds_.begin());
    if (found == kinds_.end()) kinds_.push_back(kind);
    return at;
  }
  /// One more worker, of that process.
  void add(std::size_t process, std::span<const RehearsedTime> taken, RehearsedTurn& to) const {
    std::vector<RehearsedTime>& worker = to.emplace_back(kinds_.size());
    for (std::size_t kind = 0; kind < taken.size(); ++kind) {
      worker[numbers_[process][kind]] = taken[kind];
    }
  }

  RehearsalCast cast_;
  tuning::NormalValues normal_;
  std::vector<CaseKey> kinds_;
  std::vector<std::vector<std::size_t>> numbers_;  ///< by process, of its kinds those in `kinds_`
  Companions others_{"rehearses tasks"};
  std::optional<Stage> here_;
};

Rehearsal::Rehearsal(RehearsalCast cast) : parts_(std::make_unique<Parts>(std::move(cast))) {}
Rehearsal::~Rehearsal() = default;

RehearsedTurn Rehearsal::turn(double seconds) {
  return parts_->turn(seconds);
}
const std::vector<CaseKey>& Rehearsal::kinds() const {
  return parts_->kinds();
}
Rehearsal::Pass Rehearsal::pass() const {
  return parts_->pass();
}
double Rehearsal::largest_number() const {
  return parts_->largest_number();
}

namespace {

/// How long turns of a rehearsal take, by a first short one.
double seconds_of_turns(Rehearsal& one) {
  RehearsedTime all;
  for (const RehearsedTime& kind : sums_of(one.turn(0), one.kinds().size())) all.add(kind);
  const double each = all.count > 0 ? all.seconds / static_cast<double>(all.count) : 0;
  const Rehearsal::Pass pass = one.pass();
  return std::clamp((pass.tasks * each + pass.idle_s) / warming_share, seconds_min, seconds_max);
}

}  // namespace

/// Turns are not alike in what runs in them, nor in how fast the machine is.
RehearsedTimes::RehearsedTimes(std::vector<CaseKey> kinds, const Turns& turns)
    : kinds_(std::move(kinds)) {
  std::vector<GroupTime> times;
  for (std::size_t t = 0; t < turns.size(); ++t) {
    const std::vector<RehearsedTime> sums = sums_of(turns[t], kinds_.size());
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      times.push_back({kind, t, sums[kind].seconds, static_cast<double>(sums[kind].count)});
    }
  }
  fitted_ = fit_times(kinds_.size(), turns.size(), times);
  std::vector<double> paces = fitted_.paces;
  std::erase(paces, 0.0);
  pace_ = median(std::move(paces));
  worker_paces_ = worker_paces(turns, fitted_);
}

RehearsedTimes::RehearsedTimes(RehearsalCast cast) {
  Rehearsal rehearsal(std::move(cast));
  const double seconds = seconds_of_turns(rehearsal);
  Turns turns;
  for (int i = 0; i < tuning::ratio_pairs; ++i) turns.push_back(rehearsal.turn(seconds));
  *this = RehearsedTimes(rehearsal.kinds(), turns);
}

/// A kind that did not run takes the time of its kernel's nearest kind, in proportion to the
/// operations; the nearest kind has between half and twice as many.
double RehearsedTimes::cost(const KernelCase& what) const {
  const CaseKey key = CaseKey::of(what);
  double nearest = 2;
  double cost = 0;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (fitted_.usual[kind] <= 0 || kinds_[kind].kernel != what.kernel) continue;
    if (kinds_[kind] == key) return fitted_.usual[kind];
    const double times = flops_of(what) / flops_of(kinds_[kind].what());
    const double apart = std::max(times, 1 / times);
    if (!(apart <= nearest)) continue;  // none of them has operations
    nearest = apart;
    cost = fitted_.usual[kind] * times;
  }
  return cost;
}

RehearsedRatios::RehearsedRatios(RehearsalCast now, RehearsalCast then) {
  // All processes before the first turn: what one writes while another copy of it exists is copied.
  Rehearsal first(std::move(now));
  Rehearsal second(std::move(then));
  const double seconds_of_first = seconds_of_turns(first);
  const double seconds_of_second = seconds_of_turns(second);
  RehearsedTimes::Turns of_first;
  RehearsedTimes::Turns of_second;
  for (int pair = 0; pair < tuning::ratio_pairs; ++pair) {
    const bool is_first = pair % 2 == 0;  // each in every other pair
    if (is_first) of_first.push_back(first.turn(seconds_of_first));
    of_second.push_back(second.turn(seconds_of_second));
    if (!is_first) of_first.push_back(first.turn(seconds_of_first));
  }
  now_ = RehearsedTimes(first.kinds(), of_first);
  then_ = RehearsedTimes(second.kinds(), of_second);
  std::vector<double> ratios;
  for (std::size_t pair = 0; pair < of_first.size(); ++pair) {
    const double now_pace = now_.fitted_.paces[pair];
    const double then_pace = then_.fitted_.paces[pair];
    if (now_pace > 0 && then_pace > 0) ratios.push_back(now_pace / then_pace);
  }
  now_.pace_ = then_.pace_ * median(std::move(ratios));
}

double RehearsedRatios::ratio(const KernelCase& now, const KernelCase& then) const {
  const double seconds = then_.seconds(then);
  return seconds > 0 ? now_.seconds(now) / seconds : 0;
}

}  // namespace heddle
