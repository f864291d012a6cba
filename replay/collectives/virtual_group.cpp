#include "replay/collectives/virtual_group.hpp"

#include <algorithm>
#include <utility>

#include "node-runtime/collectives/schedule/make_schedule.hpp"
#include "replay/collectives/virtual_run.hpp"
#include "replay/collectives/virtual_schedules.hpp"

namespace heddle::replay {

using collectives::CollectiveKind;
using collectives::Places;
using collectives::Rank;
using collectives::ScheduleKey;

namespace {

Places places_of(const CollectiveMachine& machine, const std::vector<std::int32_t>& slots) {
  std::vector<collectives::RankPlace> places;
  for (const std::int32_t slot : slots) places.push_back(machine.place(slot));
  return Places(std::move(places));
}

}  // namespace

VirtualGroup::VirtualGroup(const CollectiveMachine& machine, const std::vector<std::int32_t>& slots)
    : machine_(machine), places_(places_of(machine, slots)), levels_(places_) {}

VirtualOutcome VirtualGroup::run(const VirtualOperation& operation) const {
  const bool is_barrier = operation.kind == CollectiveKind::barrier;
  VirtualMessage message;
  message.element_bytes = is_barrier ? 0 : operation.element_bytes;
  const std::int64_t count = is_barrier ? 1 : operation.count;

  collectives::CollectiveQuery query;
  query.kind = operation.kind;
  query.ranks = size();
  query.sizes = levels_.largest();
  query.bytes = static_cast<double>(count) * static_cast<double>(message.element_bytes);
  VirtualOutcome outcome;
  outcome.choice = choose_collective(query, machine_.rates(), operation.overrides);

  const ScheduleKey key = collectives::key_of(operation.kind, 0, outcome.choice);
  const std::int32_t parts = collectives::message_parts(key, size());
  message.elements = [count, parts](std::int32_t block) {
    return parts == 1 ? count : collectives::message_part(count, block, parts).count();
  };
  const std::int64_t longest = std::max<std::int64_t>(1, message.elements(0));
  const collectives::Fragmentation cut =
      collectives::fragmentation_of(query, outcome.choice, longest, message.element_bytes);
  message.fragment_elements = cut.fragment_elements;
  message.in_flight = cut.in_flight;

  const VirtualSchedules schedules(
      size(), [&](Rank rank) { return collectives::make_schedule(key, rank, places_, levels_); });
  VirtualRun run(machine_, places_, schedules, std::move(message));
  outcome.seconds = std::ranges::max(run.run());
  outcome.messages = run.messages();
  const VirtualRun::LinkUse busiest = run.busiest();
  if (busiest.busy_ns > 0) {
    outcome.busiest = run.links().describe(busiest.link);
    outcome.busiest_share = static_cast<double>(busiest.busy_ns) * 1e-9 / outcome.seconds;
  }
  return outcome;
}

}  // namespace heddle::replay
