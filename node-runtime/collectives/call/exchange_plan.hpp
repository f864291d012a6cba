#pragma once

#include <cstdint>
#include <vector>

#include "node-runtime/collectives/call/exchange_call.hpp"
#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/schedule/exchange.hpp"
#include "node-runtime/collectives/schedule/places.hpp"

namespace heddle::collectives {

/// An exchange on one rank: what each of its rounds begins with, and what it amounts to.
struct ExchangePlan {
  Task task;  ///< without a seal
  ExchangeChoice choice;
  std::int64_t messages = 0;    ///< that the rank sends in a round
  std::int64_t bytes = 0;       ///< in them
  std::int64_t slot_bytes = 0;  ///< of packed elements, on the host and on devices
};

/// Which rank of which group plans.
struct ExchangeMember {
  Rank own;
  const Places& places;
  const CollectiveRates& rates;
  RankDevices* devices = nullptr;  ///< null: no part lies on one
};

/// `call` has been checked, and `parts` are those of all members (match()). Keeps the memory of the
/// slots, and refers to that of the call. O(parts of all members), once. Throws Device's Error
/// where a device has no memory left for packed elements; may wait for works of devices.
///
/// Elements on a device that lie in one piece are sent and received there. Others are packed on
/// their device; into its memory, from which their message goes, or into host memory if the message
/// has elements of other places, too.
[[nodiscard]] ExchangePlan plan_exchange(const ExchangeMember& member, const ExchangeCall& call,
                                         const std::vector<MatchedPart>& parts);

}  // namespace heddle::collectives
