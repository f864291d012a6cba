#include "node-runtime/collectives/call/memory.hpp"

#include <bit>
#include <cstring>

#include "node-runtime/transport/datatype/pack.hpp"

namespace heddle::collectives {

CallMemory::CallMemory(const std::vector<Elements>& pieces, std::int32_t blocks_each, Where where,
                       p2p::ShapeCache& shapes)
    : blocks_each_(blocks_each) {
  std::int64_t packed_bytes = 0;
  pieces_.reserve(pieces.size());
  for (const Elements& one : pieces) {
    Piece piece;
    piece.shape = shapes.shape_of(one.type, one.count);
    piece.memory = one.memory;
    piece.signature = blocks_each == 1 ? piece.shape->digest
                                       : shapes.shape_of(one.type, one.count / blocks_each)->digest;
    const std::int64_t bytes = piece.shape->bytes;
    piece.is_packed = bytes > 0 && (where == Where::packed || !piece.shape->is_run);
    if (piece.is_packed) {
      piece.offset = packed_bytes;
      packed_bytes += bytes;
    } else if (bytes > 0 && base_ == nullptr) {
      base_ = piece.memory + piece.shape->offset;
    }
    pieces_.push_back(std::move(piece));
  }
  if (packed_bytes > 0) {
    packed_ =
        std::make_shared_for_overwrite<std::byte[]>(  // NOLINT(cppcoreguidelines-avoid-c-arrays)
            static_cast<std::size_t>(packed_bytes));
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

CallMemory::Block CallMemory::block(std::int32_t number) const {
  const Piece& piece = pieces_[static_cast<std::size_t>(number / blocks_each_)];
  const std::int64_t bytes = piece.shape->bytes / blocks_each_;
  return {piece.offset + number % blocks_each_ * bytes, bytes, piece.signature};
}

void CallMemory::pack_all() const {
  for (const Piece& piece : pieces_) {
    if (!piece.is_packed) continue;
    const p2p::Shape& shape = *piece.shape;
    std::byte* const to = base_ + piece.offset;
    if (shape.is_run) {
      std::memcpy(to, piece.memory + shape.offset, static_cast<std::size_t>(shape.bytes));
    } else {
      pack(*shape.plan, shape.count, piece.memory, {0, shape.bytes}, to);
    }
  }
}

void CallMemory::unpack_all() const {
  for (const Piece& piece : pieces_) {
    if (!piece.is_packed) continue;
    const p2p::Shape& shape = *piece.shape;
    unpack(*shape.plan, shape.count, {0, shape.bytes}, base_ + piece.offset, piece.memory);
  }
}

}  // namespace heddle::collectives
