/// Which ways of ranks that have devices a call may go, in place of a schedule's steps.

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/collectives/call/plan.hpp"
#include "node-runtime/collectives/call/shared_buffer.hpp"
#include "node-runtime/collectives/call/tree_buffers.hpp"

namespace heddle::collectives {
namespace {

/// Has the ways by buffers.
bool has_buffer_ways(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::all_reduce;
}

BufferOptions buffer_options(const Call& call, std::int64_t bytes, std::int64_t unit) {
  constexpr std::int64_t usual = std::int64_t{1} << 19U;
  // Each fragment has its notes.
  constexpr std::int64_t fragments_max = 1024;
  const std::int64_t wanted = call.options.fragment_bytes > 0 ? call.options.fragment_bytes : usual;
  const std::int64_t least = std::max(wanted, (bytes + fragments_max - 1) / fragments_max);
  return {Rank{call.is_rooted() ? call.root : 0}, call.options.copies.value_or(Copies::automatic),
          (least + unit - 1) / unit * unit};
}

}  // namespace

std::string_view Planner::why_not_direct(const Call& call, const CollectiveQuery& query,
                                         bool is_asked_for) const {
  // Below, telling where memory is takes longer than the work.
  constexpr double least_bytes = 65536;
  if (call.options.chooses_algorithm() && !is_asked_for) return "";
  const std::string_view why_not = why_not_on_one_device(call, query);
  if (!why_not.empty() && is_asked_for) {
    throw Error(ErrorCode::usage, fmt::format("'direct' cannot be taken: {}", why_not));
  }
  if (!why_not.empty() || is_asked_for) return why_not;
  const bool has_blocks = call.has_blocks(Side::input) || call.has_blocks(Side::output);
  const double bytes = query.bytes * (has_blocks ? places_.size() : 1);
  return bytes < least_bytes ? "it is less than 64 KiB" : "";
}

std::string_view Planner::why_not_on_one_device(const Call& call,
                                                const CollectiveQuery& query) const {
  if (!direct_rank_) return "not all ranks are on one host and have devices";
  if (places_.size() > direct_ranks_max) return "the group has more than 16 ranks";
  if (!query.is_known || query.kind == CollectiveKind::barrier) {
    return "not all ranks know how much there is of each";
  }
  // One kernel reduces in the order of ranks.
  if (call.may_reorder() && call.order() == Order::places && !call.is_exact()) {
    return "reductions are in the order of places";
  }
  return query.bytes == 0 ? "there are no elements" : "";
}

std::optional<DeviceWay> Planner::way_by_buffers(const Call& call,
                                                 const CollectiveQuery& query) const {
  const auto wanted = overrides_of(call.options.algorithm).device_way;
  const bool has_it = has_buffer_ways(call.kind) && places_.size() > 1 && query.bytes > 0;
  if (!wanted || wanted == DeviceWay::direct || !has_it) return std::nullopt;
  const std::string_view why_not = why_not_on_one_device(call, query);
  if (why_not.empty()) return wanted;
  throw Error(ErrorCode::usage, fmt::format("'{}' cannot be taken: {}", name_of(*wanted), why_not));
}

/// What may be done in place of the steps.
void Planner::set_ways(const Call& call, const Wanted& wanted, DirectMemory memory, Task& task) {
  memory.is_forced = wanted.must_go_direct;
  memory.number = wanted.number;
  const std::int64_t unit = std::max<std::int64_t>(1, task.element_bytes);
  const BufferOptions options = buffer_options(call, memory.block_bytes, unit);
  if (wanted.by_buffers) {
    // At once: what is wrong is found before anything travels.
    const auto made = wanted.by_buffers == DeviceWay::btb
                          ? make_tree_buffer_way(call, *direct_rank_, memory, options, task)
                          : make_shared_buffer_way(call, *direct_rank_, memory, options, task);
    task.errand = [made] { return made; };
    return;
  }
  std::function<std::shared_ptr<Errand>()> by_buffer;
  if (has_buffer_ways(call.kind) && !wanted.must_go_direct) {
    by_buffer = [call, rank = *direct_rank_, memory, options, operation = task.operation,
                 scalar = task.scalar, seal = task.seal] {
      Task brief;
      brief.operation = operation;
      brief.scalar = scalar;
      brief.seal = seal;
      return make_shared_buffer_way(call, rank, memory, options, brief);
    };
  }
  add_direct_way(call, *direct_rank_, memory, std::move(by_buffer), task);
}

}  // namespace heddle::collectives
