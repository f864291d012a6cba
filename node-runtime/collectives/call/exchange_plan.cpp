#include "node-runtime/collectives/call/exchange_plan.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/require.hpp"
#include "node-runtime/collectives/call/exchange_blocks.hpp"

namespace heddle::collectives {
namespace {

/// Makes the blocks of a way that are this rank's business.
class BlockMaker {
 public:
  BlockMaker(const ExchangeMember& member, const ExchangeCall& call,
             const std::vector<MatchedPart>& parts)
      : member_(member), call_(call), parts_(parts) {}

  [[nodiscard]] std::vector<LocalBlock> make(ExchangeWay way) {
    std::vector<LocalBlock> made = blocks_of(way);
    for (LocalBlock& block : made) {
      // Several blocks that travel as one piece from host to host meet on the host.
      const bool leaves =
          member_.places[block.block.from].host != member_.places[block.block.to].host;
      const bool may_meet = way == ExchangeWay::aggregated && leaves;
      if (!may_meet) block.slot_lane = block.common_lane();
    }
    return made;
  }

 private:
  std::vector<LocalBlock> blocks_of(ExchangeWay way) {
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

/// Takes memory of devices for an exchange: says how much of each is needed, then gets one piece of
/// each.
class DeviceRoom {
 public:
  struct Place {
    p2p::LaneId lane;
    std::int64_t offset = 0;
  };
  Place add(p2p::LaneId lane, std::int64_t bytes) {
    constexpr std::int64_t alignment = 256;
    std::int64_t& end = bytes_[lane];
    const Place place{lane, end};
    end += (bytes + alignment - 1) / alignment * alignment;
    return place;
  }
  /// Throws Device's Error where there is none left.
  void take(RankDevices& devices, std::vector<std::shared_ptr<std::byte>>& kept) {
    for (const auto& [lane, bytes] : bytes_) {
      kept.push_back(devices.scratch(lane, bytes));
      begins_.emplace(lane, kept.back().get());
    }
  }
  /// After take().
  [[nodiscard]] std::byte* at(const Place& place) const {
    return begins_.at(place.lane) + place.offset;
  }
  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& [lane, bytes] : bytes_) sum += bytes;
    return sum;
  }
  /// After take(): the contents of all of it are zeros. Waits for the devices.
  void clear(RankDevices& devices) const {
    Stage stage;
    for (const auto& [lane, bytes] : bytes_) {
      const auto zeros = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes));
      const auto queue = [zeros, to = begins_.at(lane)](const p2p::WorkPlace& place) {
        place.stream.copy({to, &place.stream.device()}, {zeros->data(), nullptr}, zeros->size());
      };
      stage.push_back({"clearing memory for packed elements",
                       [lane = lane, queue](Courier& courier, std::int64_t ticket) {
                         courier.work({lane, {}, queue, nullptr}, ticket);
                         return false;
                       }});
    }
    devices.run({stage});
  }

 private:
  std::map<p2p::LaneId, std::int64_t> bytes_;
  std::map<p2p::LaneId, std::byte*> begins_;
};

/// Gives slots and pieces their memory, once for all rounds.
class PackedMemory {
 public:
  PackedMemory(LocalBlocks& local, Task& task) : local_(local), task_(task) {}

  /// Bytes taken. Slots are as long as what comes into them, one behind the other on their device
  /// or the host.
  std::int64_t take(RankDevices* devices, bool is_padded) {
    find_slots();
    find_nears();
    // Padding leaves with what it has: zeros.
    const auto zeros =
        std::make_shared<std::byte[]>(static_cast<std::size_t>(host_bytes_));  // NOLINT
    task_.own_slots = {zeros, zeros.get()};
    task_.slots = task_.own_slots.get();
    if (room_.bytes() > 0) {
      room_.take(*devices, local_.kept);
      if (is_padded) room_.clear(*devices);
    }
    set_slots();
    for (const auto& [piece, place] : nears_) piece->near = room_.at(place);
    return host_bytes_ + room_.bytes();
  }

 private:
  struct Slot {
    std::int64_t offset = 0;  ///< on the host
    std::optional<DeviceRoom::Place> on_device;
  };

  void find_slots() {
    const Schedule& schedule = task_.schedule->schedule();
    std::vector<const LocalBlock*> blocks(static_cast<std::size_t>(schedule.slots), nullptr);
    for (const Step& step : schedule.steps) {
      const bool fills_slot = step.kind != Step::Kind::send && step.to.memory == Spot::Memory::slot;
      if (fills_slot) blocks[static_cast<std::size_t>(step.to.slot)] = &local_.at(step.block);
    }
    for (const LocalBlock* const block : blocks) {
      Slot& slot = slots_.emplace_back(Slot{host_bytes_, std::nullopt});
      if (block == nullptr) continue;
      if (block->slot_lane) {
        slot.on_device = room_.add(*block->slot_lane, block->bytes);
      } else {
        host_bytes_ += block->bytes;
      }
    }
  }

  /// Pieces on devices whose block has its slot on the host.
  void find_nears() {
    for (LocalBlock& block : local_.blocks) {
      if (block.slot_lane) continue;
      for (BlockSide* const side : {&block.input, &block.output}) {
        for (TypedPiece& piece : side->pieces) {
          if (!piece.lane || piece.shape->is_run) continue;
          nears_.emplace_back(&piece, room_.add(*piece.lane, piece.shape->bytes));
        }
      }
    }
  }

  /// As integers: pointers into different pieces cannot be subtracted.
  void set_slots() {
    const auto address = [](const std::byte* at) { return std::bit_cast<std::int64_t>(at); };
    std::vector<std::int64_t> begins;
    for (const Slot& slot : slots_) {
      begins.push_back(slot.on_device ? address(room_.at(*slot.on_device)) - address(task_.slots)
                                      : slot.offset);
    }
    task_.slot_begins = std::make_shared<const std::vector<std::int64_t>>(std::move(begins));
  }

  LocalBlocks& local_;
  Task& task_;
  DeviceRoom room_;
  std::int64_t host_bytes_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::pair<TypedPiece*, DeviceRoom::Place>> nears_;
};

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
  const ExchangeSides sides{[&](std::int32_t b) { return local->at(b).is_packed(); },
                            [&](std::int32_t b) { return local->at(b).is_unpacked(); }};
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
  const bool is_padded = plan.choice.way == ExchangeWay::alltoall;
  plan.slot_bytes = PackedMemory(*local, task).take(member.devices, is_padded);
  const auto have_devices = [](const LocalBlock& b) {
    return b.input.has_devices() || b.output.has_devices();
  };
  if (std::ranges::any_of(local->blocks, have_devices)) {
    task.works = [local](const Step& step, const std::byte* from, std::byte* to) {
      return LocalBlocks::works(local, step, from, to);
    };
  }
  for (const Step& step : task.schedule->schedule().steps) {
    if (step.kind != Step::Kind::send) continue;
    plan.messages += step.is_joined ? 0 : 1;
    plan.bytes += task.place(step.block).count;
  }
  return plan;
}

}  // namespace heddle::collectives
