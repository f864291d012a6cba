#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/datatype/pack_plan.hpp"
#include "node-runtime/transport/pack/prepare.hpp"
#include "node-runtime/transport/pack/units_store.hpp"

namespace heddle {

struct PackOptions {
  /// Most thread blocks of a kernel, each half of a multiprocessor's threads; 0: as many as fill
  /// the device. A few saturate the link to the host and leave the rest to others' kernels (000
  /// section 4.4.3).
  std::uint32_t blocks_max = 0;
  bool is_near = false;  ///< the packed bytes are in memory of this very GPU
  /// The elements are in host memory that the device allocated or registered, not in the device's;
  /// the packed bytes are in a device's then.
  bool on_host = false;
};

/// Packs and unpacks on a device, on its streams, what pack() and unpack() do on the host: elements
/// that lie in the device's memory or in memory that it has opened, or in host memory that it
/// reaches in place (PackOptions::on_host), to and from a packed stream of which any range is asked
/// for (000 section 4.2).
///
/// `packed` is where the range's first byte goes to or comes from: memory of the device, opened by
/// it, of a peer, or host memory that the device allocated or registered, which is then written
/// and read in place (000 section 4.4.1). It must not overlap the elements.
///
/// Contiguous elements are copied by Stream::copy, within a GPU's caches by a kernel, and columns
/// between a device and the host by the copy engine where it likes their lengths. Other blocks,
/// transposes and triangles are computed from the plan, whose parameters travel with the kernel;
/// units are brought to the device and kept there (UnitsStore). Accesses are as wide as addresses,
/// strides and block lengths allow: packed addresses and ranges that begin at multiples of 16 bytes
/// are the fastest.
///
/// Asynchronous, as Stream's operations are; the plan may be gone when a call returns. Throws
/// Error(usage) for a range beyond the stream, a negative count and offsets that do not fit
/// 64 bits, Error(internal) for memory that is not as described.
///
/// Lifetime: the device outlives it, and it outlives what it has queued. Threads: any.
class DevicePacker {
 public:
  using Plan = std::shared_ptr<const PackPlan>;
  using Options = packing::UnitsStore::Options;

  /// Takes all memory that it will ever need: options.cache_bytes and the chunks.
  DevicePacker(Device& device, const Options& options) : device_(device), units_(device, options) {}

  void pack(Stream& stream, const Plan& plan, std::int64_t count, const void* memory,
            StreamRange range, Destination packed, const PackOptions& options = {});
  void unpack(Stream& stream, const Plan& plan, std::int64_t count, StreamRange range,
              Source packed, void* memory, const PackOptions& options = {});

  /// Copies all bytes of one shape to another one, from and to memory that the device reaches, not
  /// both of the host; the two fit each other (LoopShape::fits). Nothing is packed on the way.
  void transfer(Stream& stream, const LoopShape& from, Source source, const LoopShape& to,
                Destination memory, const PackOptions& options = {});

  [[nodiscard]] packing::UnitsStore::Statistics statistics() const { return units_.statistics(); }
  [[nodiscard]] bool is_valid() const { return units_.is_valid(); }

 private:
  /// Packs or unpacks: `packed` is only read when unpacking, `memory` when packing.
  struct Call {
    bool packs = true;
    std::int64_t count = 0;
    std::byte* memory = nullptr;
    StreamRange range;
    Destination packed;
    PackOptions options;
  };
  void run(Stream& stream, const Plan& plan, const Call& call);
  [[nodiscard]] bool is_for_copy(const Call& call) const;
  [[nodiscard]] std::optional<CopyShape> columns_of(const PackPlan& plan, const LoopNest& nest,
                                                    const Call& call) const;
  void copy_columns(Stream& stream, const LoopNest& nest, const Call& call,
                    const CopyShape& columns);
  void copy(Stream& stream, const LoopNest& nest, const Call& call);
  void run_blocks(Stream& stream, const PackPlan& plan, const LoopNest& nest, const Call& call);
  void run_units(Stream& stream, const Plan& plan, const LoopNest& nest, const Call& call);
  [[nodiscard]] const Device* device_of_elements(const Call& call) const;
  [[nodiscard]] KernelMemory elements(const PackPlan& plan, const Call& call) const;
  [[nodiscard]] static KernelMemory packed(const Call& call);

  Device& device_;
  packing::UnitsStore units_;
};

}  // namespace heddle
