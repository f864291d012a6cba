#include "node-runtime/collectives/call/exchange_blocks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle::collectives {
namespace {

void pack_on_host(const TypedPiece& piece, std::byte* to) {
  const p2p::Shape& shape = *piece.shape;
  if (shape.is_run) {
    std::memcpy(to, piece.memory + shape.offset, static_cast<std::size_t>(shape.bytes));
  } else {
    pack(*shape.plan, shape.count, piece.memory, {0, shape.bytes}, to);
  }
}

void unpack_on_host(const TypedPiece& piece, const std::byte* from) {
  const p2p::Shape& shape = *piece.shape;
  if (shape.is_run) {
    std::memcpy(piece.memory + shape.offset, from, static_cast<std::size_t>(shape.bytes));
  } else {
    unpack(*shape.plan, shape.count, {0, shape.bytes}, from, piece.memory);
  }
}

/// From a piece on the work's device to `to`, there or on the host.
void queue_packing(const p2p::WorkPlace& place, const TypedPiece& piece, const Destination& to) {
  const p2p::Shape& shape = *piece.shape;
  const Device* const device = &place.stream.device();
  const auto bytes = static_cast<std::size_t>(shape.bytes);
  if (shape.is_run) return place.stream.copy(to, {piece.memory + shape.offset, device}, bytes);
  const Destination packed = piece.near == nullptr ? to : Destination{piece.near, device};
  place.packer.pack(place.stream, shape.plan, shape.count, piece.memory, {0, shape.bytes}, packed,
                    {0, true});
  if (piece.near != nullptr) place.stream.copy(to, {piece.near, device}, bytes);
}

/// The other way round.
void queue_unpacking(const p2p::WorkPlace& place, const TypedPiece& piece, const Source& from) {
  const p2p::Shape& shape = *piece.shape;
  const Device* const device = &place.stream.device();
  const auto bytes = static_cast<std::size_t>(shape.bytes);
  if (shape.is_run) return place.stream.copy({piece.memory + shape.offset, device}, from, bytes);
  if (piece.near != nullptr) place.stream.copy({piece.near, device}, from, bytes);
  const Source packed = piece.near == nullptr ? from : Source{piece.near, device};
  place.packer.unpack(place.stream, shape.plan, shape.count, {0, shape.bytes}, packed, piece.memory,
                      {0, true});
}

/// What a copy does with a block: packs its input, or unpacks its output. One that goes from the
/// input to the output packs, unless the output does not lie as the block has it.
bool packs(const LocalBlock& block, const Step& step) {
  return step.from.front().memory == Spot::Memory::input &&
         (step.to.memory != Spot::Memory::output || block.output.is_in_place(block.bytes));
}

}  // namespace

void BlockSide::add(const RankElements& part, p2p::ShapeCache& shapes) {
  auto shape = shapes.shape_of(part.elements.type, part.elements.count);
  if (shape->bytes > 0) pieces.push_back({std::move(shape), part.elements.memory, part.lane});
}

bool BlockSide::has_devices() const {
  return std::ranges::any_of(pieces, [](const TypedPiece& p) { return p.lane.has_value(); });
}

void LocalBlock::add(const MatchedPart& part) {
  bytes += part.bytes;
  signature = mixed(signature, part.digest);
}

std::optional<p2p::LaneId> LocalBlock::common_lane() const {
  const std::vector<TypedPiece>& any = input.pieces.empty() ? output.pieces : input.pieces;
  if (any.empty()) return std::nullopt;
  const auto lane = any.front().lane;
  const auto is_there = [&](const TypedPiece& p) { return p.lane == lane; };
  const bool are_all =
      std::ranges::all_of(input.pieces, is_there) && std::ranges::all_of(output.pieces, is_there);
  return are_all ? lane : std::nullopt;
}

bool LocalBlock::passes_slot() const {
  if (block.from != block.to) return false;
  return !common_lane() && (input.has_devices() || output.has_devices());
}

std::size_t LocalBlocks::index(std::int32_t number) const {
  const auto found = std::ranges::lower_bound(blocks, number, {},
                                              [](const LocalBlock& b) { return b.block.number; });
  return static_cast<std::size_t>(found - blocks.begin());
}

bool LocalBlocks::copy(const Step& step, const std::byte* from, std::byte* to) const {
  const LocalBlock& block = at(step.block);
  const bool is_packing = packs(block, step);
  const BlockSide& side = is_packing ? block.input : block.output;
  if (side.is_in_place(block.bytes) && !side.has_devices()) return false;
  for (const TypedPiece& piece : side.pieces) {
    if (is_packing) {
      if (!piece.lane) pack_on_host(piece, to);
      to += piece.shape->bytes;
    } else {
      if (!piece.lane) unpack_on_host(piece, from);
      from += piece.shape->bytes;
    }
  }
  return true;
}

std::vector<p2p::DeviceWork> LocalBlocks::works(const std::shared_ptr<const LocalBlocks>& self,
                                                const Step& step, const std::byte* from,
                                                std::byte* to) {
  const std::size_t index = self->index(step.block);
  const LocalBlock& block = self->blocks[index];
  const bool is_packing = packs(block, step);
  const BlockSide& side = is_packing ? block.input : block.output;
  std::vector<p2p::DeviceWork> made;
  for (const TypedPiece& one : side.pieces) {
    const auto has_lane = [&](const p2p::DeviceWork& work) { return work.lane == *one.lane; };
    if (!one.lane || std::ranges::any_of(made, has_lane)) continue;
    const auto queue = [self, index, is_packing, lane = *one.lane, from,
                        to](const p2p::WorkPlace& place) {
      const LocalBlock& queued = self->blocks[index];
      const Device* const device = queued.slot_lane ? &place.stream.device() : nullptr;
      std::int64_t offset = 0;
      for (const TypedPiece& piece : (is_packing ? queued.input : queued.output).pieces) {
        if (piece.lane == lane) {
          is_packing ? queue_packing(place, piece, {to + offset, device})
                     : queue_unpacking(place, piece, {from + offset, device});
        }
        offset += piece.shape->bytes;
      }
    };
    made.push_back({*one.lane, {}, queue, nullptr});
  }
  return made;
}

}  // namespace heddle::collectives
