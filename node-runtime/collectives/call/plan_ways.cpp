/// Which ways of ranks that have devices a call may go, in place of a schedule's steps, and which
/// it goes.

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

/// Choices that are kept: a program calls few operations again and again.
constexpr std::size_t ways_kept = 256;

BufferOptions buffer_options(const Call& call, std::int64_t bytes, std::int64_t unit) {
  const std::int64_t least = buffer_fragment(call, bytes);
  return {Rank{call.is_rooted() ? call.root : 0}, call.options.copies.value_or(Copies::automatic),
          (least + unit - 1) / unit * unit};
}

}  // namespace

std::int64_t buffer_fragment(const Call& call, std::int64_t bytes) {
  constexpr std::int64_t usual = std::int64_t{1} << 19U;
  // Each fragment has its notes.
  constexpr std::int64_t fragments_max = 1024;
  const std::int64_t wanted = call.options.fragment_bytes > 0 ? call.options.fragment_bytes : usual;
  return std::max(wanted, (bytes + fragments_max - 1) / fragments_max);
}

bool Planner::must_go_direct(const Call& call, const CollectiveQuery& query) const {
  if (overrides_of(call.options.algorithm).device_way != DeviceWay::direct) return false;
  const std::string_view why_not = why_not_on_one_device(call, query);
  if (why_not.empty()) return true;
  throw Error(ErrorCode::usage, fmt::format("'direct' cannot be taken: {}", why_not));
}

Planner::Chosen Planner::choose_way(const Call& call, const CollectiveQuery& query) const {
  const bool has_ways = direct_rank_ && query.is_known && query.bytes > 0 &&
                        call.kind != CollectiveKind::barrier && places_.size() > 1;
  if (!has_ways || call.options.chooses_algorithm()) return {choose(call, query, rates_), false};
  const OrderQuery order = order_of(call);
  const WayKey key{call.kind,    call.is_rooted() ? call.root : 0, call.is_in_place,
                   order.wanted, order.values != nullptr,          order.is_exact,
                   query.bytes,  call.options.fragment_bytes};
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = ways_.find(key); known != ways_.end()) return known->second;
  }
  Chosen made = make_choice(call, query, order);
  const std::scoped_lock lock(mutex_);
  if (ways_.size() >= ways_kept) ways_.clear();
  ways_.insert_or_assign(key, made);
  return made;
}

/// Where elements are, each rank knows of its own only: telling all may not take longer than the
/// operation on memory of hosts.
Planner::Chosen Planner::make_choice(const Call& call, CollectiveQuery query,
                                     const OrderQuery& order) const {
  const CollectiveRates device = rates_of_device_memory(rates_.devices);
  CollectiveChoice for_hosts = choose(call, query, rates_);
  const CollectiveChoice for_devices = choose(call, query, device);
  if (order.values != nullptr) {
    query.values = order.values->at(static_cast<std::size_t>(for_devices.order));
  }
  Chosen made{steps_for_both(query, std::move(for_hosts), for_devices, rates_, device), false};
  CollectiveChoice& choice = made.choice;
  if (order.values != nullptr) {
    query.values = order.values->at(static_cast<std::size_t>(choice.order));
  }
  const auto bytes = static_cast<std::int64_t>(query.bytes);
  const DeviceWayQuery asked{
      .kind = call.kind,
      .bytes = query.bytes,
      .root = Rank{call.is_rooted() ? call.root : 0},
      .is_in_place = call.is_in_place,
      .gsb_fragment_bytes = static_cast<double>(buffer_fragment(call, bytes)),
      .steps = &query,
      .chosen = &choice,
      .no_direct = why_not_on_one_device(call, query)};
  const DeviceWayChoice ways = choose_device_way(asked, places_, rates_.devices);
  for (const DeviceWayChoice::Candidate& one : ways.considered) {
    choice.on_devices.push_back({name_of(one.way), one.seconds, one.lacks});
  }
  made.tries_direct = ways.way() == PredictedWay::direct && ways.tell_s <= choice.seconds;
  return made;
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
