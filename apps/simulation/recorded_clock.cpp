#include "apps/simulation/recorded_clock.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <unordered_map>

#include "base/error.hpp"

namespace heddle {
namespace {

using Words = std::array<std::uint64_t, 4>;

bool is_same(const KernelParameters& a, const KernelParameters& b) {
  return std::bit_cast<Words>(a) == std::bit_cast<Words>(b);
}

}  // namespace

/// Numbers the cases of a walk, and tells which one each item of the program is.
class RecordedClock::Collector final : public KernelClock, private replay::WalkSink {
 public:
  Collector(const SimulatedFactorization& what, std::vector<Recorded>& recorded)
      : recorded_(recorded), program_(what, *this) {}

  /// By the number of the item in the node's walk, from 1 on, as orders in a trace; -1 where it is
  /// no task.
  [[nodiscard]] std::vector<std::int32_t> kinds_of(NodeId node) {
    items_ = {-1};
    const auto walk = program_.walk(node, *this);
    while (walk->advance()) {
    }
    return std::move(items_);
  }

  [[nodiscard]] KernelSeconds seconds(const KernelCase& what) override {
    recorded_.push_back(
        {what.kernel, what.parameters, {what.operands.begin(), what.operands.end()}});
    return {};
  }

 private:
  void append(replay::TaskKindId kind, std::int32_t /*priority*/,
              std::span<const protocol::Access> /*accesses*/) override {
    items_.push_back(kind.value());
  }
  void announce(const protocol::Access& /*access*/, NodeId /*reader*/,
                std::int32_t /*priority*/) override {
    items_.push_back(-1);
  }
  void release(const protocol::Access& /*access*/) override {}
  [[nodiscard]] bool has_room() const override { return true; }

  std::vector<Recorded>& recorded_;
  SimulatedProgram program_;
  std::vector<std::int32_t> items_;
};

RecordedClock::RecordedClock(const replay::RunTrace& run, std::int32_t job,
                             const SimulatedFactorization& what, KernelClock& others)
    : others_(others) {
  Collector collector(what, recorded_);
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> kinds;
  for (const NodeId node : run.nodes) kinds[node.value()] = collector.kinds_of(node);
  for (const replay::Task& task : run.tasks) {
    if (task.job != job) continue;
    const std::vector<std::int32_t>& of_node = kinds.at(run.at(task.thread).node.value());
    const std::int32_t kind = task.order < of_node.size() ? of_node[task.order] : -1;
    if (kind < 0 || recorded_[static_cast<std::size_t>(kind)].kernel->name != run.kernel_of(task)) {
      throw Error(ErrorCode::usage,
                  fmt::format("'{}': task {} of job {} is '{}', which the factorization that the "
                              "run tells of has not there; it cannot be replayed",
                              run.source, task.order, job, run.kernel_of(task)));
    }
    Recorded& recorded = recorded_[static_cast<std::size_t>(kind)];
    recorded.seconds += static_cast<double>(task.time.ns()) * 1e-9;
    ++recorded.count;
  }
}

const RecordedClock::Recorded* RecordedClock::find(const KernelCase& what) const {
  const auto found = std::ranges::find_if(recorded_, [&](const Recorded& one) {
    return one.count > 0 && one.kernel == what.kernel && is_same(one.parameters, what.parameters) &&
           std::ranges::equal(one.operands, what.operands);
  });
  return found == recorded_.end() ? nullptr : &*found;
}

/// That of the same kernel which computes as much, or nearly.
const RecordedClock::Recorded* RecordedClock::nearest(const KernelCase& what) const {
  const Recorded* best = nullptr;
  double least = 0;
  for (const Recorded& one : recorded_) {
    if (one.count == 0 || one.kernel != what.kernel) continue;
    const double distance =
        std::abs(std::log((flops_of(one.as_case()) + 1) / (flops_of(what) + 1)));
    if (best != nullptr && distance >= least) continue;
    best = &one;
    least = distance;
  }
  return best;
}

KernelSeconds RecordedClock::seconds(const KernelCase& what) {
  if (const Recorded* const known = find(what)) return {known->mean(), 0};
  ++estimated_;
  const KernelSeconds other = others_.seconds(what);
  const Recorded* const like = nearest(what);
  if (like == nullptr || other.host <= 0) return {other.host, 0};
  const double there = others_.seconds(like->as_case()).host;
  return {there > 0 ? other.host * like->mean() / there : other.host, 0};
}

}  // namespace heddle
