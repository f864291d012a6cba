#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"

namespace heddle::collectives {

/// The elements of a call's inputs, or of its outputs, as bytes in host memory: where they lie, or
/// packed in memory of this object, if they do not lie in one piece.
class CallMemory {
 public:
  enum class Where : std::uint8_t {
    in_place,  ///< if they lie in one piece
    packed,    ///< in any case
  };
  /// A part of it that is one block of the operation's.
  struct Block {
    std::int64_t offset = 0;  ///< from base(), in bytes
    std::int64_t bytes = 0;
    std::uint64_t signature = 0;
  };

  CallMemory() = default;
  /// Each of the pieces is cut into as many blocks, alike.
  CallMemory(const std::vector<Elements>& pieces, std::int32_t blocks_each, Where where,
             p2p::ShapeCache& shapes);

  [[nodiscard]] std::byte* base() const { return base_; }
  /// Blocks count through all pieces.
  [[nodiscard]] Block block(std::int32_t number) const;

  /// Brings elements to where the bytes are, or back: O(bytes) where they are packed.
  void pack_all() const;
  void unpack_all() const;

 private:
  struct Piece {
    std::shared_ptr<const p2p::Shape> shape;
    std::byte* memory = nullptr;
    std::int64_t offset = 0;      ///< from base()
    std::uint64_t signature = 0;  ///< of a block
    bool is_packed = false;
  };

  std::vector<Piece> pieces_;
  std::int32_t blocks_each_ = 1;
  std::byte* base_ = nullptr;
  std::shared_ptr<std::byte[]> packed_;  // NOLINT(cppcoreguidelines-avoid-c-arrays)
};

}  // namespace heddle::collectives
