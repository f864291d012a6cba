#include "apps/tuning/group_copies.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fmt/core.h>
#include <limits>
#include <memory>
#include <set>

#include "base/median.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/group_core.hpp"
#include "node-runtime/collectives/schedule/copy_table.hpp"
#include "node-runtime/collectives/schedule/direct.hpp"
#include "node-runtime/node_internals.hpp"

namespace heddle::tuning {
namespace {

using collectives::CollectiveKind;
using collectives::CopyTable;
using CopyClock = std::chrono::steady_clock;

constexpr std::array copied_kinds{CollectiveKind::broadcast, CollectiveKind::reduce,
                                  CollectiveKind::all_reduce};
constexpr std::array<std::int64_t, 5> copied_sizes{4096, 16384, 65536, 262144, 1048576};
constexpr int copy_turns = 7;
/// Fewer staged copies are taken where more gain no more than that.
constexpr double gain_wanted = 0.97;

double seconds_from(CopyClock::time_point begin) {
  return std::chrono::duration<double>(CopyClock::now() - begin).count();
}

/// Numbers of copies to compare: none, all, and quarters of all.
std::set<std::int32_t> numbers_of_staged(std::int32_t copies) {
  std::set<std::int32_t> numbers;
  for (std::int32_t quarter = 0; quarter <= 4; ++quarter) numbers.insert(copies * quarter / 4);
  return numbers;
}

class CopyGame {
 public:
  explicit CopyGame(const Node& node)
      : core_(NodeInternals(node).group_of_all()),
        group_(core_),
        input_(node.device(0), static_cast<std::size_t>(copied_sizes.back())),
        output_(node.device(0), static_cast<std::size_t>(copied_sizes.back())) {}
  CopyGame(const CopyGame&) = delete;
  CopyGame& operator=(const CopyGame&) = delete;
  ~CopyGame() {
    core_->set_copy_table(std::make_shared<const CopyTable>());
    group_.release(input_.address());
    group_.release(output_.address());
  }

  [[nodiscard]] std::int32_t size() const { return group_.size(); }
  /// The fastest number, the same on all ranks.
  [[nodiscard]] std::int32_t best(CollectiveKind kind, std::int64_t bytes) {
    std::int32_t found = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const std::int32_t staged : numbers_of_staged(group_.size() - 1)) {
      core_->set_copy_table(
          std::make_shared<const CopyTable>(CopyTable{{{kind, group_.size(), bytes, staged}}, {}}));
      const double seconds = measure(kind, bytes);
      if (seconds >= gain_wanted * least) continue;
      least = seconds;
      found = staged;
    }
    return found;
  }
  /// Rank 0's answer, on all ranks.
  [[nodiscard]] bool agree(bool goes_on) {
    std::int8_t agreed = goes_on ? 1 : 0;
    group_.broadcast({&agreed, 1, Scalar::int8}, 0);
    return agreed != 0;
  }

 private:
  /// Median of the slowest rank's.
  [[nodiscard]] double measure(CollectiveKind kind, std::int64_t bytes) {
    run(kind, bytes);  // mappings and memory are made
    std::array<double, copy_turns> times{};
    for (double& time : times) {
      group_.barrier();
      const CopyClock::time_point begin = CopyClock::now();
      run(kind, bytes);
      time = seconds_from(begin);
    }
    group_.all_reduce({times.data(), copy_turns, Scalar::float64}, ReduceOperation::maximum());
    return median({times.begin(), times.end()});
  }

  void run(CollectiveKind kind, std::int64_t bytes) {
    CollectiveOptions options;
    options.algorithm = "gsb";
    options.copies = Copies::by_table;
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(double));
    const Outgoing from{input_.address(), count, Scalar::float64};
    const Incoming to{output_.address(), count, Scalar::float64};
    const auto sum = ReduceOperation::sum();
    if (kind == CollectiveKind::broadcast) return group_.broadcast(to, 0, options);
    if (kind == CollectiveKind::reduce) return group_.reduce(from, to, sum, 0, options);
    group_.all_reduce(from, to, sum, options);
  }

  std::shared_ptr<collectives::GroupCore> core_;
  Group group_;
  DeviceBuffer input_;
  DeviceBuffer output_;
};

}  // namespace

std::vector<StagedCopies> measure_group_copies(
    const Node& node, double seconds, const std::function<void(const std::string& what)>& tell) {
  if (!NodeInternals(node).group_of_all()->may_share_devices()) return {};
  const CopyClock::time_point begin = CopyClock::now();
  CopyGame game(node);
  std::vector<StagedCopies> rows;
  for (const std::int64_t bytes : copied_sizes) {
    for (const CollectiveKind kind : copied_kinds) {
      if (!game.agree(seconds_from(begin) < seconds)) return rows;
      tell(fmt::format("copies of {} for {} of {} bytes", game.size(), name_of(kind), bytes));
      rows.push_back({std::string(name_of(kind)), game.size(), bytes, game.best(kind, bytes)});
    }
  }
  return rows;
}

}  // namespace heddle::tuning
