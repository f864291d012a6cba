#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::p2p {

/// How the bytes of a message travel.
enum class Path : std::uint8_t {
  eager,    ///< with the note that announces them
  message,  ///< over the wire; what is not contiguous host memory passes through slots (copy-in,
            ///< copy-out: 000 section 4.3.2)
  shared,   ///< packed into slots of the receiver in memory that both nodes of a host reach
  get,  ///< read by the receiver from the sender's memory: its device from a device (000 section
        ///< 4.3.1), its processor from contiguous memory of the host
  put,  ///< written by the sender's device into the receiver's device memory
  ring  ///< packed into a ring of slots on a device of the receiver's, unpacked from there
};
inline constexpr int path_count = 6;

/// "eager", "message", "shared", "get", "put", "ring".
[[nodiscard]] std::string_view name_of(Path path);
/// The other way round; nothing for other words.
[[nodiscard]] std::optional<Path> path_named(std::string_view name);

/// Memory of one side of a message, as far as the choice depends on it.
struct SideFacts {
  bool on_device = false;
  bool is_contiguous = true;
  /// Host memory that devices of its node reach in place.
  bool is_locked = false;
  friend bool operator==(const SideFacts&, const SideFacts&) = default;
};

/// A message between two nodes when a receive takes it, from the receiver's point of view.
struct Situation {
  std::int64_t bytes = 0;
  SideFacts sender;
  SideFacts receiver;
  bool is_self = false;  ///< both nodes are one
  /// Both sides are on one GPU, or one is and the other node reaches its host memory by that GPU.
  bool same_device = false;
  /// The GPU is one that processes take turns on, and of the two nodes this one is to work on it.
  bool works_here = false;
  bool takes_turns = false;  ///< see works_here
  /// Why a path cannot be taken between these two, whatever is sent; empty where it can. The texts
  /// outlive what is chosen by them.
  std::string_view no_shared{};
  std::string_view no_get{};  ///< of a device's memory
  /// Why nothing is copied from the sender's elements to the receiver's as they lie, if one side is
  /// not contiguous.
  std::string_view no_between{"the sender's and the receiver's elements are not alike"};
  std::string_view no_read{};  ///< of the sender's host memory
  std::string_view no_put{};
  std::string_view no_ring{};
  /// A mapping that get or put needs is there; otherwise the message travels without, and the next
  /// one finds it.
  bool maps_get = true;
  bool maps_put = true;
  friend bool operator==(const Situation&, const Situation&) = default;
};

/// What paths are made of, measured or assumed. Times in microseconds, rates in 10^9 bytes per
/// second.
struct PathRates {
  double note_us = 1;     ///< from one endpoint to another
  double message_us = 4;  ///< the wire, beside its rate
  double device_us = 10;  ///< a short operation of a device, until the host has seen its end
  double read_us = 1;     ///< a core's reading of another process's memory, beside its rate
  double host = 8;        ///< packing or unpacking by a core
  double read = 10;       ///< reading another process's memory, by a core
  double message = 6;     ///< the wire
  double to_device = 50;
  double to_host = 50;
  double peer = 350;    ///< between devices
  double local = 1800;  ///< within one device
  double pack = 1600;   ///< packing or unpacking on a device
  /// Until a GPU that processes share without the Multi-Process Service turns to another one.
  double turn_us = 140;
};

/// Sizes that paths work with.
struct PathSizes {
  std::int64_t piece_bytes = std::int64_t{512} << 10U;      ///< of slots in host memory
  std::int64_t ring_piece_bytes = std::int64_t{16} << 20U;  ///< of slots on devices
  /// Of another process's memory, in one go: long enough for the system's call, short enough for
  /// other messages to have their turn.
  std::int64_t read_piece_bytes = std::int64_t{1} << 20U;
  std::int32_t pieces_ahead = 4;  ///< slots of one message
  std::int32_t ring_slots = 8;    ///< of one message, on devices
  /// A message that cores pack and unpack comes in so many pieces, for both to be at work soon, but
  /// none is smaller than this.
  std::int64_t shared_pieces = 16;
  std::int64_t shared_piece_bytes_min = std::int64_t{16} << 10U;
  /// Likewise one that devices pack and unpack; each piece takes the hosts some 10 us.
  std::int64_t ring_pieces = 8;
  std::int64_t ring_piece_bytes_min = std::int64_t{4} << 20U;

  /// Of a message that travels by `shared`.
  [[nodiscard]] std::int64_t shared_piece(std::int64_t bytes, bool any_on_device) const;
  /// Of a message that travels by `ring`.
  [[nodiscard]] std::int64_t ring_piece(std::int64_t bytes) const;
};

/// What PathEstimate::lacks says where only a mapping is missing, which the next message finds.
inline constexpr std::string_view not_mapped_yet =
    "the memory is not mapped yet, but will be for the next message";

/// A path that was considered.
struct PathEstimate {
  Path path = Path::message;
  double predicted_us = 0;
  std::string_view lacks;  ///< why it cannot be taken; empty where it can
};

/// What was chosen, and all that was considered, the chosen one first.
struct PathChoice {
  std::array<PathEstimate, path_count - 1> estimates;  ///< of all paths that are chosen
  std::string note;                                    ///< why it is not the forced one

  [[nodiscard]] Path path() const { return estimates.front().path; }
  [[nodiscard]] double predicted_us() const { return estimates.front().predicted_us; }
  /// Only a mapping is missing for `path`.
  [[nodiscard]] bool would_map_for(Path path) const;
};

/// The path that promises to be the fastest of those that can be taken (000 section 4.3.3: stages
/// of a pipeline overlap but for the first and the last fragment), or `forced` where it can be.
/// There is always one: over the wire everything can be sent.
[[nodiscard]] PathChoice choose_path(const Situation& situation, const PathRates& rates,
                                     const PathSizes& sizes, std::optional<Path> forced);

}  // namespace heddle::p2p
