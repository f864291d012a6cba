/// The ways of an operation on memory of devices.

#include <algorithm>
#include <fmt/core.h>

#include "base/error.hpp"
#include "node-runtime/collectives/call/plan.hpp"

namespace heddle::collectives {
namespace {

/// Choices that are kept: a program calls few operations again and again.
constexpr std::size_t ways_kept = 256;

}  // namespace

std::int64_t buffer_fragment(const Call& call, std::int64_t bytes) {
  constexpr std::int64_t usual = std::int64_t{1} << 19U;
  // Each fragment has its notes.
  constexpr std::int64_t fragments_max = 1024;
  const std::int64_t wanted = call.options.fragment_bytes > 0 ? call.options.fragment_bytes : usual;
  return std::max(wanted, (bytes + fragments_max - 1) / fragments_max);
}

bool Planner::must_go_direct(const Call& call, const CollectiveQuery& query) const {
  if (!overrides_of(call.options.algorithm).is_direct) return false;
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
  made.tries_direct = ways.way() == DeviceWay::direct && ways.tell_s <= choice.seconds;
  return made;
}

}  // namespace heddle::collectives
