#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/reduce/rows.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"

namespace heddle::collectives {

/// Host memory whose contents are unspecified.
[[nodiscard]] std::shared_ptr<std::byte> host_bytes(std::int64_t bytes);

/// Memory of a rank's node, and its devices, as its calls need them. Threads: any.
class RankDevices {
 public:
  RankDevices() = default;
  RankDevices(const RankDevices&) = delete;
  RankDevices& operator=(const RankDevices&) = delete;
  virtual ~RankDevices() = default;

  /// The device that has the memory; nullopt: the host. Throws Error(usage) for memory that
  /// messages cannot take.
  [[nodiscard]] virtual std::optional<p2p::LaneId> lane_of(const void* memory,
                                                           std::int64_t bytes) const = 0;
  [[nodiscard]] virtual const Device& device(p2p::LaneId lane) const = 0;
  /// Device memory for a while. Throws Device's Error where there is none left.
  [[nodiscard]] virtual std::shared_ptr<std::byte> scratch(p2p::LaneId lane,
                                                           std::int64_t bytes) = 0;
  /// Host memory for a while for a device's fastest copies (page-locked). Null: the node has no
  /// more to give now. Throws Device's Error where the system refuses it.
  [[nodiscard]] virtual std::shared_ptr<std::byte> locked_host(p2p::LaneId lane,
                                                               std::int64_t bytes) = 0;
  /// Host memory for a while, contents unspecified.
  [[nodiscard]] virtual std::shared_ptr<std::byte> host(std::int64_t bytes) {
    return host_bytes(bytes);
  }
  /// Does all stages, one after the other, and waits for each; throws what makes one fail. Not by
  /// the progress thread.
  virtual void run(const std::vector<Stage>& stages) = 0;
};

/// Where a rank has all of one operation's elements while its steps run: on the host or on a device
/// of its node. What lies elsewhere is brought there before, and back behind.
struct Home {
  RankDevices* devices = nullptr;     ///< null: a node without any
  std::optional<p2p::LaneId> lane{};  ///< none: the host

  [[nodiscard]] std::shared_ptr<std::byte> host(std::int64_t bytes) const {
    return devices == nullptr ? host_bytes(bytes) : devices->host(bytes);
  }
};

/// Elements where they lie.
struct ElementRows {
  std::byte* memory = nullptr;  ///< of the first one
  std::int64_t bytes = 0;
  reduction::Rows rows{};
};

/// The elements of a call's inputs, or of its outputs, as bytes at one home: where they lie, or
/// packed in memory of this object, if they lie elsewhere or not in one piece.
class CallMemory {
 public:
  enum class Where : std::uint8_t {
    in_place,  ///< if they lie in one piece at home
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
             p2p::ShapeCache& shapes, const Home& home = {});

  [[nodiscard]] std::byte* base() const { return base_; }
  /// Blocks count through all pieces.
  [[nodiscard]] Block block(std::int32_t number) const;
  /// All elements, of `element_bytes` each, if they are rows at home or follow each other there:
  /// kernels that reduce take these without packing.
  [[nodiscard]] std::optional<ElementRows> rows(std::int64_t element_bytes) const;
  [[nodiscard]] bool is_packed() const { return packed_ != nullptr; }

  /// Whether devices have to bring elements to where the bytes are, or back.
  [[nodiscard]] bool needs_devices() const;
  /// Brings elements to where the bytes are, or back, without devices: O(bytes) where they are
  /// packed.
  void pack_all() const;
  void unpack_all() const;
  /// The same by stages, with devices.
  [[nodiscard]] std::vector<Stage> packing() const;
  [[nodiscard]] std::vector<Stage> unpacking() const;

 private:
  struct Piece {
    std::shared_ptr<const p2p::Shape> shape;
    std::byte* memory = nullptr;
    std::int64_t offset = 0;             ///< from base()
    std::uint64_t signature = 0;         ///< of a block
    std::optional<p2p::LaneId> lane;     ///< where it lies
    std::shared_ptr<std::byte> near;     ///< packed, on its own device, on the way to another place
    std::shared_ptr<std::byte> between;  ///< packed, on the host, on the way to or from a device
    bool is_packed = false;
  };

  void find_ways(Piece& piece) const;
  static void pack(const Piece& piece, std::byte* to);
  static void unpack(const Piece& piece, const std::byte* from);
  [[nodiscard]] Chore leave(const Piece& piece) const;
  [[nodiscard]] Chore arrive(const Piece& piece) const;
  [[nodiscard]] Chore leave_home(const Piece& piece) const;
  [[nodiscard]] Chore come_back(const Piece& piece) const;

  std::vector<Piece> pieces_;
  std::int32_t blocks_each_ = 1;
  Where where_ = Where::in_place;
  Home home_;
  std::byte* base_ = nullptr;
  std::shared_ptr<std::byte> packed_;
};

}  // namespace heddle::collectives
