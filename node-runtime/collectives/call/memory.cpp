#include "node-runtime/collectives/call/memory.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle::collectives {

std::shared_ptr<std::byte> host_bytes(std::int64_t bytes) {
  const auto made = std::make_shared_for_overwrite<std::byte[]>(  // NOLINT(*-avoid-c-arrays)
      static_cast<std::size_t>(bytes));
  return {made, made.get()};
}

namespace {

/// Done at once, by this thread.
Chore on_host(std::function<void()> work) {
  return {"packing", [work = std::move(work)](Courier&, std::int64_t) {
            work();
            return true;
          }};
}

Chore on_device(p2p::LaneId lane, std::function<void(const p2p::WorkPlace&)> queue) {
  return {"packing on a device",
          [lane, queue = std::move(queue)](Courier& courier, std::int64_t ticket) {
            courier.work({lane, {}, queue, nullptr}, ticket);
            return false;
          }};
}

}  // namespace

CallMemory::CallMemory(const std::vector<Elements>& pieces, std::int32_t blocks_each, Where where,
                       p2p::ShapeCache& shapes, const Home& home)
    : blocks_each_(blocks_each), where_(where), home_(home) {
  std::int64_t packed_bytes = 0;
  pieces_.reserve(pieces.size());
  for (const Elements& one : pieces) {
    Piece piece;
    piece.shape = shapes.shape_of(one.type, one.count);
    piece.memory = one.memory;
    piece.signature = blocks_each == 1 ? piece.shape->digest
                                       : shapes.shape_of(one.type, one.count / blocks_each)->digest;
    const std::int64_t bytes = piece.shape->bytes;
    if (bytes > 0 && home.devices != nullptr) {
      piece.lane = home.devices->lane_of(piece.memory + piece.shape->first, bytes);
    }
    piece.is_packed =
        bytes > 0 && (where == Where::packed || !piece.shape->is_run || piece.lane != home.lane);
    if (piece.is_packed) {
      piece.offset = packed_bytes;
      packed_bytes += bytes;
      find_ways(piece);
    } else if (bytes > 0 && base_ == nullptr) {
      base_ = piece.memory + piece.shape->offset;
    }
    pieces_.push_back(std::move(piece));
  }
  if (packed_bytes > 0) {
    packed_ = home.lane ? home.devices->scratch(*home.lane, packed_bytes) : home.host(packed_bytes);
    if (base_ == nullptr) base_ = packed_.get();
  }
  // As integers: pointers into different pieces cannot be subtracted.
  const auto address = [](const std::byte* at) { return std::bit_cast<std::int64_t>(at); };
  for (Piece& piece : pieces_) {
    if (piece.shape->bytes == 0) continue;
    piece.offset = piece.is_packed ? address(packed_.get()) + piece.offset - address(base_)
                                   : address(piece.memory) + piece.shape->offset - address(base_);
  }
}

/// A piece that is not at home passes through host memory, and packed through memory of its own
/// device.
void CallMemory::find_ways(Piece& piece) const {
  if (piece.lane == home_.lane) return;
  const std::int64_t bytes = piece.shape->bytes;
  if (piece.lane && !piece.shape->is_run) piece.near = home_.devices->scratch(*piece.lane, bytes);
  if (home_.lane) piece.between = home_.host(bytes);
}

CallMemory::Block CallMemory::block(std::int32_t number) const {
  const Piece& piece = pieces_[static_cast<std::size_t>(number / blocks_each_)];
  const std::int64_t bytes = piece.shape->bytes / blocks_each_;
  return {piece.offset + number % blocks_each_ * bytes, bytes, piece.signature};
}

std::optional<ElementRows> CallMemory::rows(std::int64_t element_bytes) const {
  if (pieces_.size() != 1 || where_ == Where::packed || element_bytes == 0) return std::nullopt;
  const Piece& piece = pieces_.front();
  const p2p::Shape& shape = *piece.shape;
  if (shape.bytes == 0 || piece.lane != home_.lane) return std::nullopt;
  if (shape.is_run) return ElementRows{piece.memory + shape.offset, shape.bytes};
  if (!shape.loops || shape.loops->nest.offset != 0) return std::nullopt;
  const auto& [body, nest, triangle] = *shape.loops;
  ElementRows found{piece.memory + shape.first, shape.bytes};
  if (body == PackPlan::Body::triangle && nest.depth == 0) {
    found.rows = {triangle.first_bytes, triangle.step_bytes, triangle.stride};
  } else if (body == PackPlan::Body::block && nest.depth == 1) {
    found.rows = {nest.body_bytes, 0, nest.loops.front().stride};
  }
  // Rows that overlap, or go backwards, are packed.
  const reduction::Arrangement all{found.rows};
  const bool are_rows =
      found.rows.bytes > 0 && found.rows.stride >= found.rows.bytes && all.has_whole(element_bytes);
  return are_rows ? std::optional(found) : std::nullopt;
}

bool CallMemory::needs_devices() const {
  for (const Piece& piece : pieces_) {
    if (piece.is_packed && (piece.lane || home_.lane)) return true;
  }
  return false;
}

// ---- on the host -----------------------------------------------------------------------------

void CallMemory::pack(const Piece& piece, std::byte* to) {
  const p2p::Shape& shape = *piece.shape;
  if (shape.is_run) {
    std::memcpy(to, piece.memory + shape.offset, static_cast<std::size_t>(shape.bytes));
  } else {
    heddle::pack(*shape.plan, shape.count, piece.memory, {0, shape.bytes}, to);
  }
}

void CallMemory::unpack(const Piece& piece, const std::byte* from) {
  const p2p::Shape& shape = *piece.shape;
  heddle::unpack(*shape.plan, shape.count, {0, shape.bytes}, from, piece.memory);
}

void CallMemory::pack_all() const {
  for (const Piece& piece : pieces_) {
    if (piece.is_packed) pack(piece, base_ + piece.offset);
  }
}

void CallMemory::unpack_all() const {
  for (const Piece& piece : pieces_) {
    if (piece.is_packed) unpack(piece, base_ + piece.offset);
  }
}

// ---- by stages -------------------------------------------------------------------------------

/// From where the piece lies to its home, or to host memory on the way there.
Chore CallMemory::leave(const Piece& piece) const {
  std::byte* const home = base_ + piece.offset;
  if (!piece.lane) {
    std::byte* const to = piece.between ? piece.between.get() : home;
    return on_host([piece, to] { pack(piece, to); });
  }
  const bool is_at_home = piece.lane == home_.lane;
  std::byte* const to = piece.between ? piece.between.get() : home;
  return on_device(*piece.lane, [piece, to, is_at_home](const p2p::WorkPlace& place) {
    const p2p::Shape& shape = *piece.shape;
    const Device* const device = &place.stream.device();
    const auto bytes = static_cast<std::size_t>(shape.bytes);
    const StreamRange all{0, shape.bytes};
    if (is_at_home) {
      return place.packer.pack(place.stream, shape.plan, shape.count, piece.memory, all,
                               {to, device}, {0, true});
    }
    const std::byte* run = piece.memory + shape.offset;
    if (piece.near) {
      place.packer.pack(place.stream, shape.plan, shape.count, piece.memory, all,
                        {piece.near.get(), device}, {0, true});
      run = piece.near.get();
    }
    place.stream.copy({to, nullptr}, {run, device}, bytes);
  });
}

/// From host memory on the way to the home.
Chore CallMemory::arrive(const Piece& piece) const {
  return on_device(*home_.lane, [piece, to = base_ + piece.offset](const p2p::WorkPlace& place) {
    place.stream.copy({to, &place.stream.device()}, {piece.between.get(), nullptr},
                      static_cast<std::size_t>(piece.shape->bytes));
  });
}

/// From the home to host memory on the way to where the piece lies.
Chore CallMemory::leave_home(const Piece& piece) const {
  return on_device(*home_.lane, [piece, from = base_ + piece.offset](const p2p::WorkPlace& place) {
    place.stream.copy({piece.between.get(), nullptr}, {from, &place.stream.device()},
                      static_cast<std::size_t>(piece.shape->bytes));
  });
}

/// To where the piece lies.
Chore CallMemory::come_back(const Piece& piece) const {
  const std::byte* const from = piece.between ? piece.between.get() : base_ + piece.offset;
  if (!piece.lane) return on_host([piece, from] { unpack(piece, from); });
  const bool is_at_home = piece.lane == home_.lane;
  return on_device(*piece.lane, [piece, from, is_at_home](const p2p::WorkPlace& place) {
    const p2p::Shape& shape = *piece.shape;
    const Device* const device = &place.stream.device();
    const StreamRange all{0, shape.bytes};
    const auto bytes = static_cast<std::size_t>(shape.bytes);
    if (is_at_home) {
      return place.packer.unpack(place.stream, shape.plan, shape.count, all, {from, device},
                                 piece.memory, {0, true});
    }
    if (!piece.near) {
      return place.stream.copy({piece.memory + shape.offset, device}, {from, nullptr}, bytes);
    }
    place.stream.copy({piece.near.get(), device}, {from, nullptr}, bytes);
    place.packer.unpack(place.stream, shape.plan, shape.count, all, {piece.near.get(), device},
                        piece.memory, {0, true});
  });
}

namespace {

void drop_empty(std::vector<Stage>& stages) {
  std::erase_if(stages, [](const Stage& stage) { return stage.empty(); });
}

}  // namespace

std::vector<Stage> CallMemory::packing() const {
  std::vector<Stage> stages(2);
  for (const Piece& piece : pieces_) {
    if (!piece.is_packed) continue;
    stages[0].push_back(leave(piece));
    if (piece.between) stages[1].push_back(arrive(piece));
  }
  drop_empty(stages);
  return stages;
}

std::vector<Stage> CallMemory::unpacking() const {
  std::vector<Stage> stages(2);
  for (const Piece& piece : pieces_) {
    if (!piece.is_packed) continue;
    if (piece.between) stages[0].push_back(leave_home(piece));
    stages[1].push_back(come_back(piece));
  }
  drop_empty(stages);
  return stages;
}

}  // namespace heddle::collectives
