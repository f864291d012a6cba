#include "node-runtime/collectives/call/exchange_plan.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/require.hpp"
#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle::collectives {
namespace {

/// A part of a block, on a rank that has its elements.
struct TypedPiece {
  std::shared_ptr<const p2p::Shape> shape;
  std::byte* memory = nullptr;

  void pack_to(std::byte* to) const {
    if (shape->is_run) {
      std::memcpy(to, memory + shape->offset, static_cast<std::size_t>(shape->bytes));
    } else {
      pack(*shape->plan, shape->count, memory, {0, shape->bytes}, to);
    }
  }
  void unpack_from(const std::byte* from) const {
    if (shape->is_run) {
      std::memcpy(memory + shape->offset, from, static_cast<std::size_t>(shape->bytes));
    } else {
      unpack(*shape->plan, shape->count, {0, shape->bytes}, from, memory);
    }
  }
};

/// One side of a block on this rank.
struct BlockSide {
  std::vector<TypedPiece> pieces;  ///< one behind the other in the block; empty: another rank's

  /// The elements lie as a block of so many bytes has them.
  [[nodiscard]] bool is_in_place(std::int64_t bytes) const {
    return pieces.size() == 1 && pieces.front().shape->is_run &&
           pieces.front().shape->bytes == bytes;
  }
  [[nodiscard]] std::byte* first() const {
    return pieces.front().memory + pieces.front().shape->offset;
  }
  void add(const RankElements& part, p2p::ShapeCache& shapes) {
    auto shape = shapes.shape_of(part.elements.type, part.elements.count);
    if (shape->bytes > 0) pieces.push_back({std::move(shape), part.elements.memory});
  }
};

/// A block of the schedule that this rank has to do with.
struct LocalBlock {
  ExchangeBlock block;
  std::int64_t bytes = 0;
  std::uint64_t signature = 0;
  BlockSide input;
  BlockSide output;

  void add(const MatchedPart& part) {
    bytes += part.bytes;
    signature = mixed(signature, part.digest);
  }
};

/// The blocks of a rank, ascending by number; shared by a task's functions.
struct LocalBlocks {
  std::vector<LocalBlock> blocks;
  std::vector<BlockPlace> places;  ///< of the blocks

  [[nodiscard]] std::size_t index(std::int32_t number) const {
    const auto found = std::ranges::lower_bound(blocks, number, {},
                                                [](const LocalBlock& b) { return b.block.number; });
    return static_cast<std::size_t>(found - blocks.begin());
  }
  [[nodiscard]] const LocalBlock& at(std::int32_t number) const { return blocks[index(number)]; }

  /// Elements that do not lie as the block has them are packed or unpacked; false: they are copied.
  [[nodiscard]] bool copy(const Step& step, const std::byte* from, std::byte* to) const {
    const LocalBlock& block = at(step.block);
    const bool is_packing =
        step.from.front().memory == Spot::Memory::input && !block.input.is_in_place(block.bytes);
    const bool is_unpacking =
        step.to.memory == Spot::Memory::output && !block.output.is_in_place(block.bytes);
    if (is_packing) {
      for (const TypedPiece& piece : block.input.pieces) {
        piece.pack_to(to);
        to += piece.shape->bytes;
      }
    } else if (is_unpacking) {
      for (const TypedPiece& piece : block.output.pieces) {
        piece.unpack_from(from);
        from += piece.shape->bytes;
      }
    }
    return is_packing || is_unpacking;
  }
};

/// Makes the blocks of a way that are this rank's business.
class BlockMaker {
 public:
  BlockMaker(const ExchangeMember& member, const ExchangeCall& call,
             const std::vector<MatchedPart>& parts)
      : member_(member), call_(call), parts_(parts) {}

  [[nodiscard]] std::vector<LocalBlock> make(ExchangeWay way) {
    switch (way) {
      case ExchangeWay::neighbours:
        return by_parts();
      case ExchangeWay::aggregated:
        return by_pairs_of_host();
      case ExchangeWay::alltoallv:
      case ExchangeWay::alltoall:
        break;
    }
    return by_all_pairs(way == ExchangeWay::alltoall);
  }

 private:
  void add(LocalBlock& to, const MatchedPart& part) {
    to.add(part);
    if (part.from == member_.own) {
      to.input.add(call_.outgoing[static_cast<std::size_t>(part.outgoing)], shapes_);
    }
    if (part.to == member_.own) {
      to.output.add(call_.incoming[static_cast<std::size_t>(part.incoming)], shapes_);
    }
  }

  std::vector<LocalBlock> by_parts() {
    std::vector<LocalBlock> blocks;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const MatchedPart& part = parts_[p];
      const bool is_own = part.from == member_.own || part.to == member_.own;
      if (!is_own || part.bytes == 0) continue;
      LocalBlock& block = blocks.emplace_back();
      block.block = {static_cast<std::int32_t>(p), part.from, part.to};
      add(block, part);
    }
    return blocks;
  }

  /// Parts of a pair are one block, with the number of the pair among those that have bytes.
  std::vector<LocalBlock> by_pairs_of_host() {
    std::map<std::pair<Rank, Rank>, std::vector<const MatchedPart*>> pairs;
    for (const MatchedPart& part : parts_) {
      if (part.bytes > 0) pairs[{part.from, part.to}].push_back(&part);
    }
    const std::int32_t host = member_.places[member_.own].host;
    std::vector<LocalBlock> blocks;
    for (std::int32_t number = 0; const auto& [pair, list] : pairs) {
      const bool is_near =
          member_.places[pair.first].host == host || member_.places[pair.second].host == host;
      if (is_near) {
        LocalBlock& block = blocks.emplace_back();
        block.block = {number, pair.first, pair.second};
        for (const MatchedPart* const part : list) add(block, *part);
      }
      ++number;
    }
    return blocks;
  }

  /// A block of each pair of this rank; one without a byte has one, so that there is a message.
  std::vector<LocalBlock> by_all_pairs(bool is_padded) {
    std::map<std::pair<Rank, Rank>, std::int64_t> bytes;
    std::int64_t longest = 1;
    std::map<std::int32_t, LocalBlock> made;
    const std::int32_t ranks = member_.places.size();
    const Rank own = member_.own;
    const auto block_of = [&](Rank from, Rank to) -> LocalBlock& {
      const std::int32_t number = all_to_all_block(from, to, ranks);
      LocalBlock& block = made[number];
      block.block = {number, from, to};
      return block;
    };
    for (Rank other{0}; other < Rank{ranks}; ++other) {
      block_of(own, other);
      block_of(other, own);
    }
    for (const MatchedPart& part : parts_) {
      longest = std::max(longest, bytes[{part.from, part.to}] += part.bytes);
      const bool is_own = part.from == own || part.to == own;
      if (is_own && part.bytes > 0) add(block_of(part.from, part.to), part);
    }
    std::vector<LocalBlock> blocks;
    for (auto& [number, block] : made) {
      const bool stays = block.block.from == block.block.to;
      if (stays && block.bytes == 0) continue;
      if (!stays) block.bytes = is_padded ? longest : std::max<std::int64_t>(1, block.bytes);
      blocks.push_back(std::move(block));
    }
    return blocks;
  }

  const ExchangeMember& member_;
  const ExchangeCall& call_;
  const std::vector<MatchedPart>& parts_;
  p2p::ShapeCache shapes_{false};
};

/// Where the blocks are, from memory that is not null; as integers: pointers into different pieces
/// cannot be subtracted.
void set_block_places(LocalBlocks& local, Task& task) {
  const auto address = [](const std::byte* at) { return std::bit_cast<std::int64_t>(at); };
  for (const LocalBlock& b : local.blocks) {
    if (b.input.is_in_place(b.bytes) && task.input == nullptr) task.input = b.input.first();
    if (b.output.is_in_place(b.bytes) && task.output == nullptr) task.output = b.output.first();
  }
  for (const LocalBlock& b : local.blocks) {
    BlockPlace place{b.bytes, 0, 0, b.signature};
    if (b.input.is_in_place(b.bytes)) place.input = address(b.input.first()) - address(task.input);
    if (b.output.is_in_place(b.bytes))
      place.output = address(b.output.first()) - address(task.output);
    local.places.push_back(place);
  }
}

/// Slots as long as what comes into them, one behind the other.
std::int64_t set_slots(Task& task) {
  const Schedule& schedule = task.schedule->schedule();
  std::vector<std::int64_t> begins(static_cast<std::size_t>(schedule.slots) + 1, 0);
  for (const Step& step : schedule.steps) {
    const bool fills_slot = step.kind != Step::Kind::send && step.to.memory == Spot::Memory::slot;
    if (!fills_slot) continue;
    begins[static_cast<std::size_t>(step.to.slot) + 1] = task.place(step.block).count;
  }
  for (std::size_t s = 1; s < begins.size(); ++s) begins[s] += begins[s - 1];
  const std::int64_t bytes = begins.back();
  // Padding leaves with what it has: zeros.
  const auto zeros = std::make_shared<std::byte[]>(static_cast<std::size_t>(bytes));  // NOLINT
  task.own_slots = {zeros, zeros.get()};
  task.slots = task.own_slots.get();
  task.slot_begins = std::make_shared<const std::vector<std::int64_t>>(std::move(begins));
  return bytes;
}

ExchangeChoice choose(const ExchangeMember& member, const ExchangeCall& call,
                      const std::vector<MatchedPart>& parts) {
  std::vector<ExchangeLoad> loads;
  for (const MatchedPart& part : parts) {
    if (part.bytes == 0) continue;
    loads.push_back({part.from, part.to, static_cast<double>(part.bytes)});
  }
  return choose_exchange(loads, member.places, member.rates, exchange_way_of(call.method));
}

}  // namespace

ExchangePlan plan_exchange(const ExchangeMember& member, const ExchangeCall& call,
                           const std::vector<MatchedPart>& parts) {
  require(parts.size() < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
          "{}: {} parts of all ranks are too many", call.describe(), parts.size());
  ExchangePlan plan;
  plan.choice = choose(member, call, parts);
  const auto local = std::make_shared<LocalBlocks>();
  local->blocks = BlockMaker(member, call, parts).make(plan.choice.way);

  std::vector<ExchangeBlock> blocks;
  for (const LocalBlock& block : local->blocks) blocks.push_back(block.block);
  const ExchangeSides sides{
      [&](std::int32_t b) { return !local->at(b).input.is_in_place(local->at(b).bytes); },
      [&](std::int32_t b) { return !local->at(b).output.is_in_place(local->at(b).bytes); }};
  Task& task = plan.task;
  task.schedule = std::make_shared<const CompiledSchedule>(make_exchange(
      member.own, blocks, member.places, plan.choice.way, receives_of(call.receives), sides));
  set_block_places(*local, task);
  task.element_bytes = 1;
  for (const BlockPlace& place : local->places) {
    task.fragment_elements = std::max(task.fragment_elements, place.count);
  }
  task.place = [local](std::int32_t block) { return local->places[local->index(block)]; };
  task.copy = [local](const Step& step, const std::byte* from, std::byte* to) {
    return local->copy(step, from, to);
  };
  plan.slot_bytes = set_slots(task);
  for (const Step& step : task.schedule->schedule().steps) {
    if (step.kind != Step::Kind::send) continue;
    plan.messages += step.is_joined ? 0 : 1;
    plan.bytes += task.place(step.block).count;
  }
  return plan;
}

}  // namespace heddle::collectives
