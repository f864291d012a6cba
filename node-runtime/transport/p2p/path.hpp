#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::p2p {

/// How the bytes of a message travel.
enum class Path : std::uint8_t {
  eager,    ///< with the note that announces them
  message,  ///< over the wire; what is not contiguous host memory passes through slots (copy-in,
            ///< copy-out: 000 section 4.3.2)
  shared,   ///< packed into slots of the receiver in memory that both nodes map
  get,  ///< read by the receiver from the sender's memory: its device from a device (000 section
        ///< 4.3.1), its processor from contiguous memory of the host
  put,  ///< written by the sender's device into the receiver's device memory
  ring  ///< packed into a ring of slots on a device of the receiver's, unpacked from there
};
inline constexpr int path_count = 6;

/// "eager", "message", "shared", "get", "put", "ring".
[[nodiscard]] std::string_view name_of(Path path);
/// The path of that name; nullopt for other words.
[[nodiscard]] std::optional<Path> path_named(std::string_view name);

/// Times and rates from which the cost of a path is predicted, measured or assumed. Microseconds,
/// 10^9 bytes per second.
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

/// Sizes of pieces and slots.
struct PathSizes {
  std::int64_t piece_bytes = std::int64_t{512} << 10U;      ///< of slots in host memory
  std::int64_t ring_piece_bytes = std::int64_t{16} << 20U;  ///< of slots on devices
  /// Bytes of another process's memory read in one call: enough to amortise the call, few enough
  /// that other messages are not held up.
  std::int64_t read_piece_bytes = std::int64_t{1} << 20U;
  std::int32_t pieces_ahead = 4;  ///< slots of one message
  std::int32_t ring_slots = 8;    ///< of one message, on devices
  /// A message that cores pack and unpack comes in this many pieces, so that both work soon, but
  /// none is smaller than this.
  std::int64_t shared_pieces = 16;
  std::int64_t shared_piece_bytes_min = std::int64_t{16} << 10U;
  /// Likewise one that devices pack and unpack; each piece takes the hosts some 10 us.
  std::int64_t ring_pieces = 8;
  std::int64_t ring_piece_bytes_min = std::int64_t{4} << 20U;

  /// The piece size of a message that travels by `shared`.
  [[nodiscard]] std::int64_t shared_piece(std::int64_t bytes, bool any_on_device) const;
  /// The piece size of a message that travels by `ring`.
  [[nodiscard]] std::int64_t ring_piece(std::int64_t bytes) const;
};

}  // namespace heddle::p2p
