#include "apps/simulation/measured_clock.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "apps/tuning/beside.hpp"
#include "apps/tuning/timing.hpp"
#include "base/assert.hpp"
#include "base/companions.hpp"
#include "base/median.hpp"
#include "kernels/kernels.hpp"

namespace heddle {
namespace {

/// The best round counts: what disturbs a round is no property of the machine.
constexpr int rounds = 6;
constexpr double seconds_each = 0.0125;

/// One worker's operands, as `heddle tune` has them: sets that it takes in turns, so that they come
/// from memory; of updates what is updated alone, beside reflectors that stay in the caches, or
/// tiles of a panel that all workers read.
class CaseOperands {
 public:
  CaseOperands(const KernelCase& what, const tuning::NormalValues& normal,
               tuning::SharedPanel& panel, std::int64_t operand_bytes, std::int32_t worker,
               std::int32_t workers)
      : kernel_(*what.kernel), parameters_(what.parameters) {
    const std::size_t turning = applies() || multiplies() ? 1 : what.operands.size();
    const std::int64_t each = elements_of(what.operands.first(turning));
    const std::int64_t bytes = std::max<std::int64_t>(1, each) * 8;
    sets_ = std::clamp<std::int64_t>(operand_bytes / bytes, 2, tuning::operand_sets_max);
    const std::int64_t rest = multiplies() ? 0 : elements_of(what.operands) - each;
    memory_ = tuning::NormalElements(sets_ * each + rest, normal);
    double* at = memory_.data();
    for (std::int64_t set = 0; set < sets_; ++set) {
      std::vector<TileView> views;
      for (std::size_t i = 0; i < what.operands.size(); ++i) {
        const OperandShape& shape = what.operands[i];
        if (multiplies() && i >= turning) {
          const auto pair = panel.pair(set, worker, workers, shape.rows);
          views.push_back(panel.tile(i == 1 ? pair.row : pair.column, shape.rows, shape.columns));
          continue;
        }
        if (set > 0 && i >= turning) {
          views.push_back(views_.front()[i]);
          continue;
        }
        views.push_back({at, shape.rows, shape.columns, std::max<std::int64_t>(1, shape.rows)});
        at += shape.rows * shape.columns;
      }
      make_good(views);
      views_.push_back(std::move(views));
    }
    for (std::size_t i = 0; i < kept_count(); ++i) {
      const TileView& view = views_.front()[i];
      given_.emplace_back(view.data, view.data + view.rows * view.columns);
    }
  }

  [[nodiscard]] tuning::Work work() {
    return {[this](int run) { restore(views_of(run)); },
            [this](int run) {
              const std::int64_t info = kernel_.host({views_of(run), parameters_});
              HEDDLE_CHECK(info == 0, "{} of good tiles gives info {}", kernel_.name, info);
            }};
  }

 private:
  [[nodiscard]] static std::int64_t elements_of(std::span<const OperandShape> shapes) {
    std::int64_t elements = 0;
    for (const OperandShape& shape : shapes) elements += shape.rows * shape.columns;
    return elements;
  }
  [[nodiscard]] std::vector<TileView>& views_of(int run) {
    return views_[static_cast<std::size_t>(run % sets_)];
  }
  template <class... Kernels>
  [[nodiscard]] bool is(const Kernels&... kernels) const {
    return ((&kernel_ == &kernels) || ...);
  }
  [[nodiscard]] bool applies() const {
    return is(kernel::unmqr, kernel::tsmqr, kernel::ttmqr, kernel::unmqr_back, kernel::tsmqr_back,
              kernel::ttmqr_back, kernel::ttmqr_panel);
  }
  [[nodiscard]] bool multiplies() const { return is(kernel::syrk, kernel::gsmm); }
  [[nodiscard]] bool factors_panel() const {
    return is(kernel::geqrt, kernel::tsqrt, kernel::ttqrt, kernel::ttqrt_panel);
  }
  /// How many of the first operands are restored before each run: the kernel would change them for
  /// good.
  [[nodiscard]] std::size_t kept_count() const {
    if (is(kernel::potrf, kernel::trsm)) return 1;
    return factors_panel() ? 2 : 0;
  }

  /// A positive definite diagonal block, a factor without small pivots, reflectors without effect:
  /// numbers stay in range however often a kernel runs.
  void make_good(const std::vector<TileView>& views) const {
    const auto raise_diagonal = [&](const TileView& tile) {
      const std::int64_t offset = parameters_.as<kernel::PieceParameters>().offset;
      for (std::int64_t j = 0; j < tile.columns; ++j) {
        tile(offset + j, j) = tuning::definite_diagonal(tile.columns);
      }
    };
    if (is(kernel::potrf)) raise_diagonal(views[0]);
    if (is(kernel::trsm, kernel::inverse_blocks)) raise_diagonal(views[1]);
    if (!applies()) return;
    std::fill_n(views[3].data, views[3].rows * views[3].columns, 0.0);
  }
  void restore(const std::vector<TileView>& views) const {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      std::copy(given_[i].begin(), given_[i].end(), views[i].data);
    }
  }

  const Kernel& kernel_;
  KernelParameters parameters_;
  std::int64_t sets_ = 0;
  tuning::NormalElements memory_;
  std::vector<std::vector<TileView>> views_;  ///< by set
  std::vector<std::vector<double>> given_;
};

/// What others do while a worker runs a kernel of which a factorization runs one at a time.
struct Beside {
  const Kernel* kernel = nullptr;  ///< null: all run the same one
  KernelParameters parameters;
  std::vector<OperandShape> operands;

  /// Updates of such tiles, or by such a panel.
  static Beside of(const KernelCase& what) {
    const Kernel* const update = tuning::update_beside(*what.kernel);
    if (update == nullptr) return {};
    const OperandShape& first = what.operands[0];
    if (update == &kernel::gsmm) {
      return {update, KernelParameters{kernel::UpdateParameters{0}},
              std::vector<OperandShape>(3, {first.columns, first.columns})};
    }
    return {update, what.parameters, {first, what.operands[1], first, what.operands[2]}};
  }
};

/// A kernel on all workers of a process, again and again, or on one of them at most beside updates
/// on the others; their operands stay.
class TimedProcess {
 public:
  /// `is_first`: of those that run kernels which one worker runs at a time, it is this one that
  /// does.
  TimedProcess(const KernelCase& what, const tuning::Workers& workers, std::int64_t operand_bytes,
               const tuning::NormalValues& normal, bool is_first)
      : what_(what),
        beside_(Beside::of(what)),
        is_first_(is_first),
        workers_(workers),
        operand_bytes_(operand_bytes),
        normal_(normal),
        panel_(panel_height(workers.count * operand_bytes), largest(what, &OperandShape::rows),
               largest(what, &OperandShape::columns), normal),
        operands_(static_cast<std::size_t>(workers.count)) {}

  /// The seconds of each worker that ran the kernel.
  [[nodiscard]] std::vector<double> round(double seconds) {
    std::vector<double> times = tuning::times_on(
        workers_, workers_.count,
        [this](std::int32_t worker) {
          auto& own = operands_[static_cast<std::size_t>(worker)];
          if (own == nullptr) {  // by the thread that will use it
            own = std::make_unique<CaseOperands>(case_of(worker), normal_, panel_, operand_bytes_,
                                                 worker, workers_.count);
          }
          return own->work();
        },
        seconds);
    if (beside_.kernel != nullptr) times.resize(is_first_ ? 1 : 0);
    return times;
  }

 private:
  [[nodiscard]] KernelCase case_of(std::int32_t worker) const {
    const bool runs_it = beside_.kernel == nullptr || (is_first_ && worker == 0);
    if (runs_it) return what_;
    return {beside_.kernel, beside_.parameters, beside_.operands};
  }
  [[nodiscard]] static std::int64_t largest(const KernelCase& what,
                                            std::int64_t OperandShape::*extent) {
    std::int64_t most = 1;
    for (const OperandShape& shape : what.operands) most = std::max(most, shape.*extent);
    return most;
  }
  /// Rows of the panel for a matrix of which the workers' operands have `bytes` together, which is
  /// half of a symmetric one.
  [[nodiscard]] static std::int64_t panel_height(std::int64_t bytes) {
    const double elements = static_cast<double>(bytes) / sizeof(double);
    return std::min(tuning::SharedPanel::usual_height,
                    static_cast<std::int64_t>(std::sqrt(2 * elements)));
  }

  const KernelCase& what_;
  Beside beside_;
  bool is_first_;
  const tuning::Workers& workers_;
  std::int64_t operand_bytes_;
  const tuning::NormalValues& normal_;
  tuning::SharedPanel panel_;
  std::vector<std::unique_ptr<CaseOperands>> operands_;
};

/// A kernel on the workers of all of a clock's processes at the same time.
class TimedCase {
 public:
  TimedCase(const KernelCase& what, const std::vector<tuning::Workers>& processes,
            std::int64_t operand_bytes, const tuning::NormalValues& normal)
      : here_(what, processes.front(), operand_bytes, normal, true) {
    for (std::size_t p = 1; p < processes.size(); ++p) {
      others_.add([&, p](const Conversation& parent) {
        TimedProcess own(what, processes[p], operand_bytes, normal, false);
        for (double seconds = 0; parent.receive_value(seconds, Conversation::always);) {
          Answer answer;
          const std::vector<double> times = own.round(seconds);
          answer.count = times.size();
          HEDDLE_CHECK(answer.count <= answer.times.size(), "{} workers", answer.count);
          std::ranges::copy(times, answer.times.begin());
          if (!parent.send_value(answer)) return;
        }
      });
    }
  }

  /// Makes the operands, of all processes at the same time: once there are no more processes to be
  /// made, each of which would have a copy of them, and have it copied as this one writes.
  void prepare() {
    if (others_.count() > 0) static_cast<void>(round(0));
  }

  /// The seconds of each worker that ran the kernel.
  [[nodiscard]] std::vector<double> round(double seconds) {
    others_.tell_all(seconds);
    std::vector<double> times = here_.round(seconds);
    for (std::size_t i = 0; i < others_.count(); ++i) {
      const auto answer = others_.hear<Answer>(i);
      times.insert(times.end(), answer.times.begin(),
                   answer.times.begin() + static_cast<std::ptrdiff_t>(answer.count));
    }
    return times;
  }

 private:
  struct Answer {
    std::size_t count = 0;
    std::array<double, 1024> times{};
  };

  TimedProcess here_;
  Companions others_{"times kernels"};
};

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double MeasuredClock::seconds(const KernelCase& what, Runner runner) {
  if (runner != Runner::worker) return 0;
  TimedCase timed(what, processes_, operand_bytes_, normal_);
  timed.prepare();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < rounds; ++i) best = std::min(best, mean_of(timed.round(seconds_each)));
  return best;
}

double MeasuredClock::ratio(const KernelCase& what, MeasuredClock& of_other,
                            const KernelCase& other) {
  TimedCase now(what, processes_, operand_bytes_, normal_);
  TimedCase then(other, of_other.processes_, of_other.operand_bytes_, of_other.normal_);
  for (TimedCase* one : {&now, &then}) one->prepare();
  return tuning::ratio_by_turns([&] { return median(now.round(seconds_each)); },
                                [&] { return median(then.round(seconds_each)); });
}

}  // namespace heddle
