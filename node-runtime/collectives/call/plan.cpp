#include "node-runtime/collectives/call/plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/schedule/barrier.hpp"
#include "node-runtime/collectives/schedule/reduce.hpp"
#include "node-runtime/collectives/schedule/scan.hpp"
#include "node-runtime/collectives/schedule/scatter.hpp"

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

}  // namespace

std::uint64_t seal_of(const Call& call, std::int64_t number) {
  std::uint64_t seal =
      mixed(static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(call.kind));
  seal = mixed(seal, call.is_rooted() ? static_cast<std::uint64_t>(call.root) : 0);
  seal = mixed(seal, call.reduces() ? std::hash<std::string_view>()(call.operation.name()) : 1);
  seal = mixed(seal, call.is_listed ? 2 : 1);
  seal = mixed(seal, std::hash<std::string_view>()(call.options.algorithm));
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

Planner::Planner(Rank own, Places places, const CollectiveRates& rates)
    : own_(own),
      places_(std::move(places)),
      levels_(places_),
      direct_(on_hosts_of_their_own(places_.size())),
      rates_(rates) {}

Planner::Planned Planner::plan(const Call& call, std::int64_t number) {
  const std::int32_t ranks = places_.size();
  const bool is_direct = call.is_listed && call.kind != CollectiveKind::all_gather;
  CollectiveQuery query;
  query.kind = call.kind;
  query.ranks = ranks;
  query.sizes = (is_direct ? direct_ : levels_).largest();
  query.is_known = !call.is_listed && call.counts.empty();
  const Elements* const one = !call.inputs.empty()    ? call.inputs.data()
                              : !call.outputs.empty() ? call.outputs.data()
                                                      : nullptr;
  // What all ranks know. Which side a rank has does not matter: the elements are alike.
  if (query.is_known && one != nullptr) {
    query.bytes = static_cast<double>(one->count) * static_cast<double>(one->type.size());
  }
  CollectiveOverrides overrides = overrides_of(call.options.algorithm);
  if (call.options.fragment_bytes > 0) overrides.fragment_bytes = call.options.fragment_bytes;

  Planned planned{{}, choose_collective(query, rates_, overrides)};
  CollectiveChoice& choice = planned.choice;
  const Key key{call.kind,         call.is_rooted() ? call.root : 0,
                choice.trees,      choice.all_reduce,
                choice.all_to_all, is_direct};
  Task& task = planned.task;
  task.schedule = schedule_of(key);
  task.operation = call.operation;
  if (call.reduces())
    task.scalar = scalar_of(call.inputs.empty() ? call.outputs.front() : call.inputs.front(), call);
  task.element_bytes = call.kind == CollectiveKind::barrier ? 0 : size_of(task.scalar);
  set_places(call, key, task);

  std::int64_t longest = 1;
  for (const Step& step : task.schedule->schedule().steps) {
    longest = std::max(longest, task.place(step.block).count);
  }
  task.fragment_elements = longest;
  if (query.is_known && choice.fragment_bytes > 0 && choice.fragment_bytes < query.bytes) {
    const double elements = choice.fragment_bytes / static_cast<double>(task.element_bytes);
    task.fragment_elements = std::max<std::int64_t>(1, static_cast<std::int64_t>(elements));
    task.in_flight = choice.in_flight;
  }
  const auto slot_bytes = static_cast<std::size_t>(task.schedule->schedule().slots) *
                          static_cast<std::size_t>(task.fragment_elements * task.element_bytes) *
                          static_cast<std::size_t>(task.in_flight);
  if (slot_bytes > 0) {
    task.own_slots = std::make_shared_for_overwrite<std::byte[]>(slot_bytes);  // NOLINT
    task.slots = task.own_slots.get();
  }

  task.seal = seal_of(call, number);
  return planned;
}

std::shared_ptr<const CompiledSchedule> Planner::schedule_of(const Key& key) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = schedules_.find(key); found != schedules_.end()) return found->second;
  }
  auto made = std::make_shared<const CompiledSchedule>(make(key));
  const std::scoped_lock lock(mutex_);
  if (schedules_.size() >= schedules_kept) schedules_.clear();
  schedules_.emplace(key, made);
  return made;
}

Schedule Planner::make(const Key& key) const {
  const Levels& levels = key.is_direct ? direct_ : levels_;
  const Rank root{key.root};
  switch (key.kind) {
    case CollectiveKind::barrier:
      return make_barrier(own_, levels, key.trees);
    case CollectiveKind::broadcast:
      return make_broadcast(own_, root, levels, key.trees);
    case CollectiveKind::scatter:
      return make_scatter(own_, root, levels, key.trees);
    case CollectiveKind::gather:
      return make_gather(own_, root, levels, key.trees);
    case CollectiveKind::all_gather:
      return make_all_gather(own_, levels, key.trees);
    case CollectiveKind::reduce:
      return make_reduce(own_, root, levels, key.trees);
    case CollectiveKind::all_reduce:
      return make_all_reduce(own_, levels, key.trees, key.all_reduce);
    case CollectiveKind::reduce_scatter:
      return make_reduce_scatter(own_, levels, key.trees);
    case CollectiveKind::all_to_all:
      return make_all_to_all(own_, places_, levels, key.all_to_all);
    case CollectiveKind::scan:
      return make_scan(own_, places_.size(), Scan::inclusive);
    case CollectiveKind::exclusive_scan:
      return make_scan(own_, places_.size(), Scan::exclusive);
  }
  HEDDLE_CHECK(false, "a collective of number {}", static_cast<int>(key.kind));
  return {};
}

/// Where blocks are in the task's memory, in elements of task.element_bytes.
void Planner::set_places(const Call& call, const Key& key, Task& task) {
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
                             CallMemory::Where::in_place, outputs_);
  // What others get of a reduction for all they have before its result is here. A prefix does not
  // wait for those who are behind: they may read what is written.
  const bool may_share =
      call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::all_reduce;
  if (call.is_in_place && may_share) {
    sides->input = sides->output;
  } else if (call.is_in_place) {
    sides->input = CallMemory(of_all(call.outputs, has_blocks_out), has_blocks_out ? ranks : 1,
                              CallMemory::Where::packed, inputs_);
  } else {
    sides->input = CallMemory(of_all(call.inputs, has_blocks_in), has_blocks_in ? ranks : 1,
                              CallMemory::Where::in_place, inputs_);
  }
  // The first rank has nothing before it.
  const bool gives_output = call.kind != CollectiveKind::exclusive_scan || own != 0;
  sides->input.pack_all();
  task.input = sides->input.base();
  task.output = sides->output.base();
  task.finish = [sides, gives_output] {
    if (gives_output) sides->output.unpack_all();
  };

  using Where = CallMemory::Block;
  const auto in = [sides](std::int32_t b) { return sides->input.block(b); };
  const auto out = [sides](std::int32_t b) { return sides->output.block(b); };
  const auto part = [unit](const Where& from, const Where& to, std::int32_t b,
                           std::int32_t blocks) {
    const std::int64_t count = std::max(from.bytes, to.bytes) / unit;
    const std::int64_t begin = count / blocks * b + std::min<std::int64_t>(b, count % blocks);
    const std::int64_t length = count / blocks + (b < count % blocks ? 1 : 0);
    return BlockPlace{length, from.offset / unit + begin, to.offset / unit + begin,
                      from.bytes > 0 ? from.signature : to.signature};
  };
  const bool has_in = !call.inputs.empty() || call.is_in_place;
  const bool has_out = !call.outputs.empty();
  switch (call.kind) {
    case CollectiveKind::barrier:
      task.place = [](std::int32_t) { return BlockPlace{1, 0, 0, 0}; };
      return;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::all_reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exclusive_scan: {
      std::int32_t blocks = 1;
      if (call.kind == CollectiveKind::broadcast) blocks = broadcast_blocks(key.trees);
      if (call.kind == CollectiveKind::all_reduce) {
        blocks = all_reduce_blocks(key.all_reduce, ranks, key.trees);
      }
      const Where from = has_in ? in(0) : Where{};
      const Where to = has_out ? out(0) : Where{};
      task.place = [=](std::int32_t b) { return part(from, to, b, blocks); };
      return;
    }
    case CollectiveKind::reduce_scatter: {
      std::vector<std::int64_t> begins(static_cast<std::size_t>(ranks) + 1, 0);
      const Where from = in(0);
      const std::int64_t scalars = call.inputs.front().type.size() / unit;
      for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
        const std::int64_t count =
            call.counts.empty() ? from.bytes / unit : call.counts[r] * scalars;
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
