#include "apps/simulation/rehearsal.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <fmt/core.h>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "apps/tuning/operands.hpp"
#include "apps/tuning/timing.hpp"
#include "base/assert.hpp"
#include "base/companions.hpp"
#include "base/median.hpp"
#include "base/memory_block.hpp"
#include "kernels/cholesky.hpp"
#include "kernels/qr.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

/// What begins in the first part of a turn does not count: it finds caches with another
/// rehearsal's tiles, and a clock as it was with another number of cores at work.
constexpr double warming_share = 1.0 / 3;
/// A turn takes that, and as long as one of the workers takes for so many tasks.
constexpr double seconds_each = 0.09;
constexpr int tasks_min = 3;
/// So small that products of any number of them stay in range, and far above denormal ones.
constexpr double scale = 1e-3;

/// A number that one thread moves and others read, on a line of its own.
struct alignas(64) Position {
  std::atomic<std::int32_t> value{0};
};

/// One process's part. Tasks [0, next) have been taken, and copies [0, copied) are there, since the
/// first task was last begun with.
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
        memory_(allocate_memory_block(
            static_cast<std::size_t>(std::max<std::int64_t>(1, plan.elements)) * sizeof(double))),
        source_(static_cast<std::size_t>(largest_copy(plan)), scale) {}

  /// By kind.
  [[nodiscard]] std::vector<RehearsedTime> turn(double seconds) {
    std::vector<RehearsedTime> all(plan_.kinds.size());
    if (plan_.tasks.empty()) return all;
    std::vector<std::vector<RehearsedTime>> of_workers(static_cast<std::size_t>(workers_.count),
                                                       all);
    const auto after = [begin = Clock::now()](double passed) {
      return begin +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(passed));
    };
    const Turn turn{after(warming_share * seconds), after(seconds)};
    is_over_.store(false, std::memory_order_relaxed);
    std::barrier together(workers_.count + 1);
    {
      std::vector<std::jthread> threads;
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
    for (const std::vector<RehearsedTime>& one : of_workers) {
      for (std::size_t kind = 0; kind < all.size(); ++kind) all[kind].add(one[kind]);
    }
    return all;
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
  void work(std::int32_t worker, const Turn& turn, std::barrier<>& together,
            std::vector<RehearsedTime>& taken) {
    const auto count = static_cast<std::int32_t>(plan_.tasks.size());
    std::atomic<std::int32_t>& at = at_[static_cast<std::size_t>(worker)].value;
    together.arrive_and_wait();  // what tasks read is filled
    for (int run = 0;;) {
      for (;;) {
        if (is_over_.load(std::memory_order_relaxed)) break;
        const std::int32_t number = next_.fetch_add(1, std::memory_order_relaxed);
        // Released: what this worker's last task has used may be overwritten.
        at.store(std::min(number, count), std::memory_order_release);
        if (number >= count) break;
        const RehearsalPlan::Task& task = plan_.tasks[static_cast<std::size_t>(number)];
        if (!wait_for_copies(task.copies) || !wait_for_tasks(task.behind)) break;
        const Clock::time_point begin = Clock::now();
        run_task(task);
        const Clock::time_point end = Clock::now();
        if (begin >= turn.counts_from) {
          ++run;
          taken[static_cast<std::size_t>(task.kind)].add(
              {std::chrono::duration<double>(end - begin).count(), 1});
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

  void run_task(const RehearsalPlan::Task& task) {
    const CaseKey& kind = plan_.kinds[static_cast<std::size_t>(task.kind)];
    std::array<TileView, protocol::accesses_max> views;
    for (std::size_t i = 0; i < kind.operand_count; ++i) {
      const OperandShape& shape = kind.operands.at(i);
      views.at(i) = {elements() + task.at.at(i), shape.rows, shape.columns,
                     std::max<std::int64_t>(1, shape.rows)};
    }
    const KernelCase what = kind.as_case();
    const std::int64_t info =
        kind.kernel->host({std::span(views).first(kind.operand_count), what.parameters});
    HEDDLE_CHECK(info == 0, "an update gives info {}", info);
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
      }
      for (Position& position : at_) {
        position.value.store(next_.load(std::memory_order_relaxed), std::memory_order_relaxed);
      }
      together.arrive_and_wait();
    }
  }

  /// All tasks up to that one have ended. Acquired: what they have written may be used.
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
    copied_.store(next + 1, std::memory_order_release);
    return true;
  }

  /// Nobody waits with the lock: a block's last user may be waiting for an earlier copy.
  bool try_copy_next() {
    const std::unique_lock lock(copying_, std::try_to_lock);
    return lock.owns_lock() && copied_.load(std::memory_order_relaxed) < std::ssize(plan_.copies) &&
           copy_next();
  }

  /// All that there are, as progress threads do, until the time is over.
  void copy_all() {
    constexpr std::chrono::microseconds pause{20};
    while (copied_.load(std::memory_order_relaxed) < std::ssize(plan_.copies) &&
           !is_over_.load(std::memory_order_relaxed)) {
      if (!copy_next()) std::this_thread::sleep_for(pause);
    }
  }

  /// False: the time is over before they are there.
  [[nodiscard]] bool wait_for_copies(std::int32_t copies) {
    while (copied_.load(std::memory_order_acquire) < copies) {
      if (is_over_.load(std::memory_order_relaxed)) return false;
      if (has_core_ || !try_copy_next()) std::this_thread::yield();
    }
    return true;
  }

  /// Whoever waits does so for tasks before its own, the first of which waits for none; and copies
  /// for tasks before their first readers'. False: the time is over before.
  [[nodiscard]] bool wait_for_tasks(std::int32_t task) const {
    while (!are_past(task)) {
      if (is_over_.load(std::memory_order_relaxed)) return false;
      std::this_thread::yield();
    }
    return true;
  }

  const RehearsalPlan& plan_;
  const tuning::Workers& workers_;
  const tuning::NormalValues& normal_;
  bool has_core_;
  std::mutex copying_;        ///< of workers that copy
  std::vector<Position> at_;  ///< by worker: it uses what no task before this one does
  std::atomic<std::int32_t> next_{0};
  std::atomic<std::int32_t> copied_{0};
  std::atomic<bool> is_over_{false};
  bool is_filled_ = false;
  MemoryBlock memory_;
  std::vector<double> source_;
};

}  // namespace

bool can_be_rehearsed(const Kernel& kernel) {
  const auto updates = {&kernel::gsmm, &kernel::syrk, &kernel::unmqr, &kernel::tsmqr,
                        &kernel::ttmqr};
  return std::ranges::find(updates, &kernel) != updates.end();
}

class Rehearsal::Parts {
 public:
  explicit Parts(RehearsalCast cast) : cast_(std::move(cast)) {
    HEDDLE_CHECK(!cast_.plans.empty() && cast_.plans.size() == cast_.processes.size(),
                 "{} plans for {} processes", cast_.plans.size(), cast_.processes.size());
    for (std::size_t p = 0; p < cast_.plans.size(); ++p) {
      std::vector<std::size_t>& numbers = numbers_.emplace_back();
      for (const CaseKey& kind : cast_.plans[p].kinds) numbers.push_back(number_of(kind));
    }
    for (std::size_t p = 1; p < cast_.plans.size(); ++p) {
      others_.add([this, p](const Conversation& parent) {
        Stage stage(cast_.plans[p], cast_.processes[p], normal_, cast_.copies_have_cores);
        for (double seconds = 0; parent.receive_value(seconds, Conversation::always);) {
          std::vector<RehearsedTime> taken = stage.turn(seconds);
          taken.emplace_back();  // no message is empty: that is how an end looks
          if (!parent.send(std::as_bytes(std::span(taken)))) return;
        }
      });
    }
    here_.emplace(cast_.plans.front(), cast_.processes.front(), normal_, cast_.copies_have_cores);
  }

  [[nodiscard]] const std::vector<CaseKey>& kinds() const { return kinds_; }

  [[nodiscard]] std::vector<RehearsedTime> turn(double seconds) {
    others_.tell_all(seconds);
    std::vector<RehearsedTime> all(kinds_.size());
    add(0, here_->turn(seconds), all);
    for (std::size_t p = 1; p < cast_.plans.size(); ++p) {
      std::vector<RehearsedTime> taken(cast_.plans[p].kinds.size() + 1);
      others_.hear(p - 1, std::as_writable_bytes(std::span(taken)));
      taken.pop_back();
      add(p, taken, all);
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
  void add(std::size_t process, const std::vector<RehearsedTime>& taken,
           std::vector<RehearsedTime>& to) const {
    for (std::size_t kind = 0; kind < taken.size(); ++kind) {
      to[numbers_[process][kind]].add(taken[kind]);
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

std::vector<RehearsedTime> Rehearsal::turn(double seconds) {
  return parts_->turn(seconds);
}
const std::vector<CaseKey>& Rehearsal::kinds() const {
  return parts_->kinds();
}

namespace {

/// What the tasks of a turn took together for each operation.
double seconds_of_a_flop(const std::vector<CaseKey>& kinds,
                         const std::vector<RehearsedTime>& turn) {
  double seconds = 0;
  double flops = 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    seconds += turn[kind].seconds;
    flops += flops_of(kinds[kind].as_case()) * static_cast<double>(turn[kind].count);
  }
  return flops > 0 ? seconds / flops : 0;
}

/// Operations a second of a worker, of the turn in the middle; 0: it has no tasks.
double rate_of(const std::vector<CaseKey>& kinds,
               const std::vector<std::vector<RehearsedTime>>& turns) {
  std::vector<double> seconds;
  seconds.reserve(turns.size());
  for (const auto& turn : turns) seconds.push_back(seconds_of_a_flop(kinds, turn));
  const double usual = median(std::move(seconds));
  return usual > 0 ? 1 / usual : 0;
}

/// What one task of each kind takes, at the pace of the turn in which it ran: in operations of a
/// task that takes what is usual for one.
std::vector<double> costs_of(const std::vector<CaseKey>& kinds,
                             const std::vector<std::vector<RehearsedTime>>& turns) {
  std::vector<double> sums(kinds.size(), 0);
  std::vector<std::int64_t> counts(kinds.size(), 0);
  for (const std::vector<RehearsedTime>& turn : turns) {
    const double pace = seconds_of_a_flop(kinds, turn);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (turn[kind].count == 0) continue;
      sums[kind] += turn[kind].seconds / pace;
      counts[kind] += turn[kind].count;
    }
  }
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    sums[kind] = counts[kind] > 0 ? sums[kind] / static_cast<double>(counts[kind])
                                  : flops_of(kinds[kind].as_case());
  }
  return sums;
}

/// 0: it has none such.
double cost_of(const KernelCase& what, const std::vector<CaseKey>& kinds,
               const std::vector<double>& costs) {
  const auto found = std::ranges::find(kinds, CaseKey::of(what));
  return found == kinds.end() ? 0 : costs[static_cast<std::size_t>(found - kinds.begin())];
}

}  // namespace

RehearsedRatios::RehearsedRatios(RehearsalCast now, RehearsalCast then) {
  // All processes before the first turn: what one writes while another copy of it exists is copied.
  Rehearsal first(std::move(now));
  Rehearsal second(std::move(then));
  for (Rehearsal* one : {&first, &second}) static_cast<void>(one->turn(0));
  std::vector<std::vector<RehearsedTime>> of_first;
  std::vector<std::vector<RehearsedTime>> of_second;
  pace_ = tuning::ratio_by_turns(
      [&] {
        of_first.push_back(first.turn(seconds_each));
        return seconds_of_a_flop(first.kinds(), of_first.back());
      },
      [&] {
        of_second.push_back(second.turn(seconds_each));
        return seconds_of_a_flop(second.kinds(), of_second.back());
      });
  rate_now_ = rate_of(first.kinds(), of_first);
  rate_then_ = rate_of(second.kinds(), of_second);
  now_ = {first.kinds(), costs_of(first.kinds(), of_first)};
  then_ = {second.kinds(), costs_of(second.kinds(), of_second)};
}

double RehearsedRatios::ratio(const KernelCase& now, const KernelCase& then) const {
  const double of_now = cost_of(now, now_.kinds, now_.costs);
  const double of_then = cost_of(then, then_.kinds, then_.costs);
  return of_now > 0 && of_then > 0 ? pace_ * of_now / of_then : 0;
}

}  // namespace heddle
