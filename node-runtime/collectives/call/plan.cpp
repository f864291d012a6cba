#include "node-runtime/collectives/call/plan.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <utility>
#include <vector>

#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {
namespace {

/// Schedules that are kept: a program calls few operations again and again.
constexpr std::size_t schedules_kept = 256;

Places on_hosts_of_their_own(std::int32_t size) {
  std::vector<RankPlace> places(static_cast<std::size_t>(size));
  for (std::int32_t r = 0; r < size; ++r) places[static_cast<std::size_t>(r)].host = r;
  return Places(std::move(places));
}

/// The memory of both sides of a call, by blocks.
struct BothSides {
  CallMemory input;
  CallMemory output;
};

/// What a reduction may take without packing it; a side that the rank does not have is null.
void offer_rows(const CallMemory* input, const CallMemory* output, DirectMemory& memory,
                Task& task) {
  for (const auto& [side, rows] :
       {std::pair(input, &memory.input_rows), std::pair(output, &memory.output_rows)}) {
    if (side == nullptr) continue;
    const auto found = side->rows(task.element_bytes);
    if (!found) return;
    *rows = *found;
  }
  const ElementRows& from = memory.input_rows;
  const ElementRows& to = memory.output_rows;
  const bool is_same = from.memory == to.memory && from.rows == to.rows;
  if (input != nullptr && output != nullptr && !is_same &&
      may_overlap({from.memory, {from.rows}, from.bytes}, {to.memory, {to.rows}, to.bytes})) {
    return;
  }
  memory.has_rows = true;
  memory.is_packed =
      (input != nullptr && input->is_packed()) || (output != nullptr && output->is_packed());
  memory.packing = std::move(task.before);
}

/// Between the two ranks that know how much it is.
bool is_direct(const Call& call) {
  return call.is_listed && call.kind != CollectiveKind::all_gather;
}

}  // namespace

std::uint64_t seal_of(const Call& call, std::int64_t number) {
  std::uint64_t seal =
      mixed(static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(call.kind));
  seal = mixed(seal, call.is_rooted() ? static_cast<std::uint64_t>(call.root) : 0);
  seal = mixed(seal, call.reduces() ? std::hash<std::string_view>()(call.operation.name()) : 1);
  seal = mixed(seal, static_cast<std::uint64_t>(call.operation.scalars_per_element()));
  seal = mixed(seal, call.is_listed ? 2 : 1);
  // The direct way takes all members' elements from the same side.
  seal = mixed(seal, call.is_in_place ? 2 : 1);
  seal = mixed(seal, static_cast<std::uint64_t>(call.order()));
  seal = mixed(seal, std::hash<std::string_view>()(call.options.algorithm));
  seal = mixed(seal, static_cast<std::uint64_t>(call.options.copies.value_or(Copies::automatic)));
  seal = mixed(seal, static_cast<std::uint64_t>(call.options.fragment_bytes));
  // What one block has, where all ranks know it.
  const std::vector<Elements>& side = call.inputs.empty() ? call.outputs : call.inputs;
  if (!call.is_listed && call.counts.empty() && !side.empty()) {
    seal = mixed(seal, static_cast<std::uint64_t>(side.front().count) *
                           static_cast<std::uint64_t>(side.front().type.size()));
  }
  for (const std::int64_t count : call.counts) {
    seal = mixed(seal, static_cast<std::uint64_t>(count));
  }
  // 0 stands for messages without a seal.
  return std::max<std::uint64_t>(1, seal);
}

Planner::Planner(Rank own, Places places, const CollectiveRates& rates, RankDevices* devices)
    : own_(own),
      places_(std::move(places)),
      levels_(places_),
      direct_(on_hosts_of_their_own(places_.size())),
      values_{values_sent(levels_, Order::ranks), values_sent(levels_, Order::places)},
      rates_(rates),
      devices_(devices) {
  for (Rank r{1}; r < Rank{places_.size()}; ++r) {
    spans_hosts_ = spans_hosts_ || places_[r].host != places_[Rank{0}].host;
  }
}

Home Planner::home_of(const Call& call) const {
  Home home{devices_};
  if (devices_ == nullptr) return home;
  for (const std::vector<Elements>* list : {&call.outputs, &call.inputs}) {
    for (const Elements& one : *list) {
      if (one.count == 0 || one.type.size() == 0) continue;
      const std::byte* const first = one.memory + one.type.true_lower_bound();
      home.lane = devices_->lane_of(first, one.count * one.type.size());
      if (!home.lane) continue;
      const DeviceBackend backend = devices_->device(*home.lane).info().backend;
      if (call.reduces() && !call.operation.has_device_form(backend)) home.lane.reset();
      return home;
    }
  }
  return home;
}

CollectiveQuery Planner::query_of(const Call& call) const {
  CollectiveQuery query;
  query.kind = call.kind;
  query.ranks = places_.size();
  query.sizes = (is_direct(call) ? direct_ : levels_).largest();
  query.is_known = !call.is_listed && call.counts.empty();
  const Elements* const one = !call.inputs.empty()    ? call.inputs.data()
                              : !call.outputs.empty() ? call.outputs.data()
                                                      : nullptr;
  // What all ranks know. Which side a rank has does not matter: the elements are alike.
  if (query.is_known && one != nullptr) {
    query.bytes = static_cast<double>(one->count) * static_cast<double>(one->type.size());
  }
  return query;
}

CollectiveChoice Planner::choose(const Call& call) const {
  return choose_way(call, query_of(call)).choice;
}

OrderQuery Planner::order_of(const Call& call) const {
  OrderQuery order;
  if (call.may_reorder()) order = {call.order(), call.is_exact(), &values_};
  return order;
}

CollectiveChoice Planner::choose(const Call& call, const CollectiveQuery& query,
                                 const CollectiveRates& rates) const {
  CollectiveOverrides overrides = overrides_of(call.options.algorithm);
  if (call.options.fragment_bytes > 0) overrides.fragment_bytes = call.options.fragment_bytes;
  return choose_in_order(query, rates, overrides, order_of(call));
}

Planner::Planned Planner::plan(const Call& call, std::int64_t number, bool is_gated) {
  const CollectiveQuery query = query_of(call);
  const bool must_go_direct = this->must_go_direct(call, query);
  Chosen chosen = choose_way(call, query);
  Planned planned{{}, std::move(chosen.choice)};
  CollectiveChoice& choice = planned.choice;
  const Key key{key_of(call.kind, call.is_rooted() ? call.root : 0, choice), is_direct(call)};
  Task& task = planned.task;
  task.schedule = schedule_of(key);
  task.operation = call.operation;
  if (call.reduces())
    task.scalar = scalar_of(call.inputs.empty() ? call.outputs.front() : call.inputs.front(), call);
  // Blocks and fragments consist of whole elements of the operation's.
  task.element_bytes = call.reduces() ? task.operation.element_bytes(task.scalar)
                       : call.kind == CollectiveKind::barrier ? 0
                                                              : size_of(task.scalar);
  task.seal = seal_of(call, number);
  const Home home = home_of(call);
  choice.is_on_device = home.lane.has_value();
  const bool may_go_direct = chosen.tries_direct || must_go_direct;
  set_places(call, key.schedule,
             {home, is_gated, may_go_direct, must_go_direct, way_by_buffers(call, query), number},
             task);

  std::int64_t longest = 1;
  for (const Step& step : task.schedule->schedule().steps) {
    longest = std::max(longest, task.place(step.block).count);
  }
  const Fragmentation cut = fragmentation_of(query, choice, longest, task.element_bytes);
  task.fragment_elements = cut.fragment_elements;
  task.in_flight = cut.in_flight;
  if (home.lane && !is_direct(call)) {
    Key cached = key;
    cached.schedule.host_cache = choose_host_cache(query, choice);
    task.lane = home.lane;
    set_host_cache(cached, choice, task);
  }
  const auto slot_bytes = static_cast<std::size_t>(task.schedule->schedule().slots) *
                          static_cast<std::size_t>(task.fragment_elements * task.element_bytes) *
                          static_cast<std::size_t>(task.in_flight);
  if (home.lane) {
    task.lane = home.lane;
    task.scratch = [devices = devices_, lane = *home.lane](std::int64_t bytes) {
      return devices->scratch(lane, bytes);
    };
  }
  if (slot_bytes > 0) {
    task.own_slots = home.lane ? task.scratch(static_cast<std::int64_t>(slot_bytes))
                               : home.host(static_cast<std::int64_t>(slot_bytes));
    task.slots = task.own_slots.get();
  }
  return planned;
}

HostCache Planner::choose_host_cache(const CollectiveQuery& query, CollectiveChoice& choice) const {
  const bool has_one =
      spans_hosts_ && may_have_host_cache(query.kind) && query.is_known && query.bytes > 0;
  if (!has_one) return HostCache::none;
  const std::vector<HostCacheCandidate> considered = host_caches(query, choice, rates_);
  for (const HostCacheCandidate& one : considered) {
    choice.on_devices.push_back({name_of(one.cache), one.seconds, {}});
  }
  return considered.front().cache;
}

void Planner::set_host_cache(Key key, CollectiveChoice& choice, Task& task) {
  if (key.schedule.host_cache == HostCache::none) return;
  auto schedule = schedule_of(key);
  const std::int64_t bytes = schedule->schedule().host_slots * task.in_flight *
                             task.fragment_elements * task.element_bytes;
  if (bytes == 0) return;  // this rank passes nothing on
  auto slots = devices_->locked_host(*task.lane, bytes);
  if (slots == nullptr) {
    std::erase_if(choice.on_devices, [](const CollectiveChoice::DeviceCandidate& one) {
      return one.way != name_of(HostCache::none);
    });
    choice.on_devices.push_back(
        {name_of(key.schedule.host_cache), 0, "no page-locked memory is free for its slots"});
    return;
  }
  task.schedule = std::move(schedule);
  task.host_slots = std::move(slots);
  task.way_of_steps = name_of(key.schedule.host_cache);
}

std::shared_ptr<const CompiledSchedule> Planner::schedule_of(const Key& key) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = schedules_.find(key); found != schedules_.end()) return found->second;
  }
  auto made = std::make_shared<const CompiledSchedule>(
      make_schedule(key.schedule, own_, places_, key.is_direct ? direct_ : levels_));
  const std::scoped_lock lock(mutex_);
  if (schedules_.size() >= schedules_kept) schedules_.clear();
  schedules_.emplace(key, made);
  return made;
}

/// Where blocks are in the task's memory, in elements of task.element_bytes.
void Planner::set_places(const Call& call, const ScheduleKey& key, const Wanted& wanted,
                         Task& task) {
  const Home& home = wanted.home;
  const std::int32_t ranks = places_.size();
  const std::int32_t own = own_.value();
  const std::int64_t unit = std::max<std::int64_t>(1, task.element_bytes);
  const bool is_root = !call.is_rooted() || call.root == own;
  const bool has_blocks_in = call.has_blocks(Side::input);
  const bool has_blocks_out = call.has_blocks(Side::output);
  const auto of_all = [ranks](std::vector<Elements> pieces, bool times_ranks) {
    for (Elements& one : pieces) one.count *= times_ranks ? ranks : 1;
    return pieces;
  };
  const auto sides = std::make_shared<BothSides>();
  sides->output = CallMemory(of_all(call.outputs, has_blocks_out), has_blocks_out ? ranks : 1,
                             CallMemory::Where::in_place, outputs_, home);
  // What others get of a reduction for all they have before its result is here. A prefix does not
  // wait for those who are behind: they may read what is written.
  const bool may_share =
      call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::all_reduce;
  if (call.is_in_place && may_share) {
    sides->input = sides->output;
  } else if (call.is_in_place) {
    sides->input = CallMemory(of_all(call.outputs, has_blocks_out), has_blocks_out ? ranks : 1,
                              CallMemory::Where::packed, inputs_, home);
  } else {
    sides->input = CallMemory(of_all(call.inputs, has_blocks_in), has_blocks_in ? ranks : 1,
                              CallMemory::Where::in_place, inputs_, home);
  }
  // The first rank has nothing before it.
  const bool gives_output = call.kind != CollectiveKind::exclusive_scan || own != 0;
  task.memory = sides;
  task.input = sides->input.base();
  task.output = sides->output.base();
  if (wanted.is_gated || sides->input.needs_devices()) {
    task.before = sides->input.packing();
  } else {
    sides->input.pack_all();
  }
  if (gives_output && sides->output.needs_devices()) {
    task.after = sides->output.unpacking();
  } else if (gives_output) {
    task.finish = [sides] { sides->output.unpack_all(); };
  }

  const bool has_in = !call.inputs.empty() || call.is_in_place;
  const bool has_out = !call.outputs.empty();
  if (wanted.may_go_direct || wanted.by_buffers) {
    const CallMemory& known = has_in ? sides->input : sides->output;
    DirectMemory memory;
    memory.home = home;
    memory.block_bytes = known.block(0).bytes;
    memory.signature = known.block(0).signature;
    if (has_in) memory.input = sides->input.base() + sides->input.block(0).offset;
    if (has_out) memory.output = sides->output.base() + sides->output.block(0).offset;
    if (call.reduces() && wanted.may_go_direct) {
      offer_rows(has_in ? &sides->input : nullptr, has_out ? &sides->output : nullptr, memory,
                 task);
    }
    set_ways(call, wanted, memory, task);
  }

  using Where = CallMemory::Block;
  const auto in = [sides](std::int32_t b) { return sides->input.block(b); };
  const auto out = [sides](std::int32_t b) { return sides->output.block(b); };
  const auto part = [unit](const Where& from, const Where& to, std::int32_t b,
                           std::int32_t blocks) {
    const std::int64_t count = std::max(from.bytes, to.bytes) / unit;
    const Cut::Range range = message_part(count, b, blocks);
    return BlockPlace{range.count(), from.offset / unit + range.begin,
                      to.offset / unit + range.begin,
                      from.bytes > 0 ? from.signature : to.signature};
  };
  switch (call.kind) {
    case CollectiveKind::barrier:
      task.place = [](std::int32_t) { return BlockPlace{1, 0, 0, 0}; };
      return;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::all_reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exclusive_scan: {
      const std::int32_t blocks = message_parts(key, ranks);
      const Where from = has_in ? in(0) : Where{};
      const Where to = has_out ? out(0) : Where{};
      task.place = [=](std::int32_t b) { return part(from, to, b, blocks); };
      return;
    }
    case CollectiveKind::reduce_scatter: {
      std::vector<std::int64_t> begins(static_cast<std::size_t>(ranks) + 1, 0);
      const Where from = in(0);
      const std::int64_t bytes = call.inputs.front().type.size();
      for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
        const std::int64_t count =
            (call.counts.empty() ? from.bytes : call.counts[r] * bytes) / unit;
        begins[r + 1] = begins[r] + count;
      }
      const std::int64_t to = has_out ? out(0).offset / unit : 0;
      task.place = [=, begins = std::move(begins)](std::int32_t b) {
        const auto r = static_cast<std::size_t>(b);
        return BlockPlace{begins[r + 1] - begins[r], from.offset / unit + begins[r], to,
                          from.signature};
      };
      return;
    }
    case CollectiveKind::scatter: {
      // All blocks are alike, unless they are listed; then only the root and its owner see one.
      const bool lists = is_root;
      const Where mine = has_out ? out(0) : Where{};
      task.place = [=](std::int32_t b) {
        const Where from = lists ? in(b) : Where{};
        const Where& known = lists ? from : mine;
        return BlockPlace{known.bytes, from.offset, mine.offset, known.signature};
      };
      return;
    }
    case CollectiveKind::gather: {
      const bool lists = is_root;
      const Where mine = in(0);
      task.place = [=](std::int32_t b) {
        const Where to = lists ? out(b) : Where{};
        const Where& known = lists ? to : mine;
        return BlockPlace{known.bytes, b == own ? mine.offset : 0, to.offset, known.signature};
      };
      return;
    }
    case CollectiveKind::all_gather: {
      const bool in_place = call.is_in_place;
      task.place = [=](std::int32_t b) {
        const Where to = out(b);
        const std::int64_t from = b != own ? 0 : in(in_place ? b : 0).offset;
        return BlockPlace{to.bytes, from, to.offset, to.signature};
      };
      return;
    }
    case CollectiveKind::all_to_all:
      task.place = [=](std::int32_t pair) {
        const std::int32_t from = pair / ranks;
        const std::int32_t to = pair % ranks;
        const Where sent = from == own ? in(to) : Where{};
        const Where come = to == own ? out(from) : Where{};
        // What passes by is like all others.
        const Where known = from == own ? sent : to == own ? come : in(0);
        return BlockPlace{known.bytes, sent.offset, come.offset, known.signature};
      };
      return;
  }
}

}  // namespace heddle::collectives
