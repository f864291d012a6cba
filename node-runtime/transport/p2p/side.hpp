#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"

namespace heddle::p2p {

/// A message to be sent: `count` elements of `type` at `memory`, on the host or on one of the
/// endpoint's devices.
struct Outgoing {
  const void* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;
  /// What sender and receiver take the message for, beside its signature: where theirs differ they
  /// do not fit.
  std::uint64_t seal = 0;
};

/// Room for a message: `count` elements of `type` at `memory`, likewise.
struct Incoming {
  void* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;
  std::uint64_t seal = 0;
};

/// The memory of one side of a message.
struct Side {
  std::byte* memory = nullptr;  ///< a send only reads it
  const Shape* shape = nullptr;
  std::shared_ptr<const Shape> kept;  ///< keeps `shape` alive while the message is under way
  std::int64_t bytes = 0;
  std::byte* contiguous = nullptr;  ///< the first byte, where the bytes lie in one piece
  std::optional<LaneId> lane;       ///< of the device that the memory belongs to
  std::uint64_t seal = 0;

  /// Bytes that the wire can take or bring as they lie.
  [[nodiscard]] bool is_host_run() const { return contiguous != nullptr && !lane; }
  /// What travels of a message's signature and seal.
  [[nodiscard]] std::uint64_t digest() const { return shape->digest ^ seal; }
  [[nodiscard]] std::byte* first() const { return memory + shape->first; }
  [[nodiscard]] Lanes::Elements elements() const {
    return {shape->plan, shape->count, memory, !lane.has_value()};
  }
};

/// Host memory that a device of this node accesses in place, gaps included.
[[nodiscard]] bool is_locked(const Lanes& lanes, const Side& side);
/// The lane that is to access memory of `device`: the side's own, otherwise one that accesses the
/// side's host memory, on the same GPU where possible.
[[nodiscard]] LaneId lane_for(const Lanes& lanes, const Side& side, const DeviceUuid& device);
/// The side's shape has loops.
[[nodiscard]] Lanes::Loops loops_of(const Lanes& lanes, const Side& side);

/// Makes sides of the callers' arguments, and caches their shapes: programs repeat them.
///
/// Threads: of() and to_side(), any; recent(), the progress thread only.
class Sides {
 public:
  explicit Sides(const Lanes& lanes) : lanes_(lanes) {}

  /// Both throw Error(usage) for a negative count, a null address, and what ShapeCache refuses.
  [[nodiscard]] Side of(const Outgoing& message);
  [[nodiscard]] Side of(const Incoming& room);

  /// The shape, which mostly is that of the call before: found without a lock. The reference is
  /// valid until the next call for the same kind.
  [[nodiscard]] const std::shared_ptr<const Shape>& recent(const Outgoing& message);
  [[nodiscard]] const std::shared_ptr<const Shape>& recent(const Incoming& room);
  /// A side whose shape the caller keeps alive.
  [[nodiscard]] Side to_side(const Shape& shape, const Outgoing& message) const;
  [[nodiscard]] Side to_side(const Shape& shape, const Incoming& room) const;

 private:
  [[nodiscard]] Side make(const Shape& shape, std::string_view what, void* memory,
                          std::uint64_t seal) const;

  const Lanes& lanes_;
  ShapeCache sent_{false};
  ShapeCache received_{true};
  std::shared_ptr<const Shape> last_sent_;      ///< progress thread only
  std::shared_ptr<const Shape> last_received_;  ///< progress thread only
};

}  // namespace heddle::p2p
