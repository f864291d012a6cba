#pragma once

#include <cstdint>
#include <span>

#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/collectives/reduce/rows.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle {

struct ReductionOptions {
  /// Most thread blocks of the kernel, of 256 threads; 0: as many as fill the GPU. A few leave the
  /// rest to others' kernels.
  std::uint32_t blocks_max = 0;
  /// Where their elements lie, seen from the address of each: the same for all inputs, and for all
  /// outputs. Whole elements.
  reduction::Arrangement inputs{};
  reduction::Arrangement outputs{};
};

/// Throws Error(usage) with the operation and the backend, unless has_device_form(). For calls on
/// streams, on which nothing is brought to the host.
void require_device_form(const ReduceOperation& operation, DeviceBackend backend);

/// Elements of one input or output.
struct ArrangedMemory {
  const std::byte* address = nullptr;
  reduction::Arrangement arrangement{};
  std::int64_t bytes = 0;  ///< of its elements
};
/// False: no byte belongs to both. Sides whose rows interleave are told apart if the rows of both
/// are of one length and one stride.
[[nodiscard]] bool may_overlap(const ArrangedMemory& a, const ArrangedMemory& b);

/// Queues on a stream what ReduceOperation::reduce does on the host, with the same bits (000
/// section 5.2.6): every output := the value of all inputs in the Bracket over their number,
/// `count` elements each. 1 to ReduceOperation::inputs_max inputs, and as many outputs.
///
/// Inputs and outputs are any memory that byte kernels of the device reach: its own, memory that it
/// has opened, a peer's, and host memory that it has allocated or registered (without a device). An
/// output may be one of the inputs, with the same arrangement, but overlap none otherwise. Where
/// all addresses are the same distance from a multiple of 16 bytes, 16 bytes are moved at a time;
/// other addresses are slower, those that are not aligned for the scalar by far.
///
/// Rows are read and written where they lie, 16 bytes at a time if all of them are multiples of 16
/// bytes; of triangles an element at a time.
///
/// Throws Error(usage) for numbers of inputs and outputs, a scalar that the operation does not
/// take, an operation without a form for this device, and memory that may_overlap();
/// Error(internal) for memory that the device does not reach. The operation may be gone when the
/// call returns. Thread: as Stream::launch.
void queue_reduction(Stream& stream, const ReduceOperation& operation, Scalar scalar,
                     std::span<const Destination> outputs, std::span<const Source> inputs,
                     std::int64_t count, const ReductionOptions& options = {});

}  // namespace heddle
