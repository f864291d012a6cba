#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/transport/p2p/work.hpp"

/// What devices do for the buffer that ranks share (shared_buffer.hpp).
namespace heddle::collectives {

using DeviceQueue = std::function<void(const p2p::WorkPlace&)>;

/// Memory of the host, or of the device that works on it.
struct NearMemory {
  std::byte* at = nullptr;
  bool is_on_host = false;
};
[[nodiscard]] DeviceQueue copying(NearMemory to, NearMemory from, std::int64_t bytes);

/// The value of all ranks' fragments. Those of the device are read and written in place; its own
/// rank's elements may be on the host, and then pass through slots.
struct BufferReduction {
  ReduceOperation operation;
  Scalar scalar = Scalar::byte;
  std::int64_t bytes = 0;
  std::vector<std::byte*> from;  ///< by rank, on the device
  std::vector<std::byte*> to;    ///< on the device
  /// If they are not null: a copy from the host to `own_slot` goes before, and one of the first
  /// result to the host goes behind.
  const std::byte* host_input = nullptr;
  std::byte* own_slot = nullptr;
  std::byte* host_output = nullptr;
};
[[nodiscard]] DeviceQueue reducing(BufferReduction reduction);

}  // namespace heddle::collectives
