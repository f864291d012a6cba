#include "node-runtime/transport/pack/device_packer.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <optional>

#include "base/error.hpp"
#include "node-runtime/transport/pack/pack_kernels.hpp"

namespace heddle {
namespace {

using packing::BlocksWork;
using packing::FarSide;
using packing::UnitsWork;

/// The unit that byte `at` of a body belongs to.
std::int64_t unit_of(const PackPlan& plan, std::int64_t at) {
  const auto behind =
      std::upper_bound(plan.units.begin(), plan.units.end(), at,
                       [](std::int64_t byte, const WorkUnit& unit) { return byte < unit.stream; });
  return behind - plan.units.begin() - 1;
}

/// All that a shape may touch, from its first byte on.
std::size_t span_of(const LoopShape& shape) {
  std::int64_t span = shape.nest.offset + shape.nest.body_bytes;
  if (shape.body == PackPlan::Body::triangle) {
    // Where columns end is linear in their numbers.
    const datatype::Triangle& triangle = shape.triangle;
    const std::int64_t last = triangle.columns - 1;
    span = shape.nest.offset +
           std::max(triangle.bytes_of(0), last * triangle.stride + triangle.bytes_of(last));
  }
  for (std::size_t l = 0; l < shape.nest.depth; ++l) {
    const datatype::Loop& loop = shape.nest.loops[l];
    span += std::max<std::int64_t>(0, (loop.count - 1) * loop.stride);
  }
  return static_cast<std::size_t>(span);
}

/// Columns between the device and the host that are aligned, or long, as copy engines want them:
/// these fill the link, of which kernels leave a twentieth, and take no multiprocessor. Measured on
/// an H200; others come at 80 to 90 % of the link's rate.
bool are_for_copy_engine(const CopyShape& shape) {
  const std::size_t bits = shape.column_bytes | shape.source_leading | shape.destination_leading;
  const auto are_multiples_of = [&](std::size_t bytes) { return bits % bytes == 0; };
  return are_multiples_of(64) || shape.column_bytes >= 32768 ||
         (are_multiples_of(8) && shape.column_bytes >= 512 && shape.column_bytes <= 8192);
}

/// A kernel gets every range that it may write; a copy has one address type for both directions.
std::byte* writable(const void* address) {
  return static_cast<std::byte*>(const_cast<void*>(address));  // NOLINT(*-const-cast)
}

}  // namespace

void DevicePacker::pack(Stream& stream, const Plan& plan, std::int64_t count, const void* memory,
                        StreamRange range, Destination packed, const PackOptions& options) {
  run(stream, plan, {true, count, writable(memory), range, packed, options});
}

void DevicePacker::unpack(Stream& stream, const Plan& plan, std::int64_t count, StreamRange range,
                          Source packed, void* memory, const PackOptions& options) {
  run(stream, plan,
      {false, count, writable(memory), range, {writable(packed.address), packed.device}, options});
}

void DevicePacker::run(Stream& stream, const Plan& plan, const Call& call) {
  const std::int64_t all = plan->stream_bytes(call.count);
  const StreamRange& range = call.range;
  if (range.begin < 0 || range.bytes < 0 || range.begin > all || range.bytes > all - range.begin) {
    throw Error(ErrorCode::usage,
                fmt::format("{} bytes from byte {} on are not within the packed stream of {} bytes "
                            "that {} elements make",
                            range.bytes, range.begin, all, call.count));
  }
  if (range.bytes == 0) return;
  const LoopNest nest = plan->nest_of(call.count);
  if (plan->body == PackPlan::Body::units) {
    run_units(stream, plan, nest, call);
  } else if (plan->body == PackPlan::Body::block && nest.depth == 0 && is_for_copy(call)) {
    copy(stream, nest, call);
  } else if (const auto columns = columns_of(*plan, nest, call);
             columns && are_for_copy_engine(*columns)) {
    copy_columns(stream, nest, call, *columns);
  } else {
    run_blocks(stream, *plan, nest, call);
  }
}

KernelMemory DevicePacker::elements(const PackPlan& plan, const Call& call) const {
  const std::int64_t last = (call.count - 1) * plan.extent;
  const std::int64_t begin = std::min<std::int64_t>(0, last) + plan.true_lower_bound;
  const std::int64_t end = std::max<std::int64_t>(0, last) + plan.true_upper_bound;
  return {call.memory + begin, static_cast<std::size_t>(end - begin), device_of_elements(call),
          !call.packs};
}

const Device* DevicePacker::device_of_elements(const Call& call) const {
  return call.options.on_host ? nullptr : &device_;
}

KernelMemory DevicePacker::packed(const Call& call) {
  return {call.packed.address, static_cast<std::size_t>(call.range.bytes), call.packed.device,
          call.packs};
}

void DevicePacker::copy(Stream& stream, const LoopNest& nest, const Call& call) {
  std::byte* memory = call.memory + nest.offset + call.range.begin;
  const auto bytes = static_cast<std::size_t>(call.range.bytes);
  const Device* const device = device_of_elements(call);
  if (call.packs) {
    stream.copy(call.packed, {memory, device}, bytes);
  } else {
    stream.copy({memory, device}, {call.packed.address, call.packed.device}, bytes);
  }
}

/// Whether Stream::copy takes contiguous elements. It has one end in the device's own memory.
/// Within one GPU CUDA makes a kernel of a copy too: measured on an H200, while the caches hold
/// both sides, ours is over 1.7 us earlier at 16 MiB; beyond them CUDA's is faster.
bool DevicePacker::is_for_copy(const Call& call) const {
  if (call.options.on_host) return call.packed.device == &device_;
  constexpr std::int64_t least = std::int64_t{2} << 20U;
  constexpr std::int64_t most = std::int64_t{32} << 20U;
  const bool is_for_kernel = call.options.is_near && call.options.blocks_max == 0 &&
                             call.range.bytes >= least && call.range.bytes <= most;
  return !is_for_kernel;
}

/// Whole blocks between the device and the host, as columns; nullopt where they are not.
std::optional<CopyShape> DevicePacker::columns_of(const PackPlan& plan, const LoopNest& nest,
                                                  const Call& call) const {
  const bool crosses_link =
      call.options.on_host ? call.packed.device == &device_ : call.packed.device == nullptr;
  if (plan.body != PackPlan::Body::block || nest.depth != 1 || !crosses_link) return std::nullopt;
  const std::int64_t bytes = nest.body_bytes;
  const std::int64_t stride = nest.loops[0].stride;
  const bool are_whole = call.range.begin % bytes == 0 && call.range.bytes % bytes == 0;
  if (!are_whole || stride < bytes) return std::nullopt;
  const auto column = static_cast<std::size_t>(bytes);
  const auto leading = static_cast<std::size_t>(stride);
  const std::size_t columns = static_cast<std::size_t>(call.range.bytes) / column;
  return call.packs ? CopyShape{column, columns, column, leading}
                    : CopyShape{column, columns, leading, column};
}

void DevicePacker::copy_columns(Stream& stream, const LoopNest& nest, const Call& call,
                                const CopyShape& columns) {
  std::byte* memory =
      call.memory + nest.offset + call.range.begin / nest.body_bytes * nest.loops[0].stride;
  const Device* const device = device_of_elements(call);
  if (call.packs) {
    stream.copy_strided(call.packed, {memory, device}, columns);
  } else {
    stream.copy_strided({memory, device}, {call.packed.address, call.packed.device}, columns);
  }
}

void DevicePacker::run_blocks(Stream& stream, const PackPlan& plan, const LoopNest& nest,
                              const Call& call) {
  FarSide far = FarSide::none;
  if (call.packed.device == nullptr) far = FarSide::stream;
  if (call.options.on_host) far = FarSide::memory;
  const BlocksWork work{plan.body,
                        call.packs,
                        call.options.blocks_max,
                        nest,
                        plan.triangle,
                        call.memory,
                        static_cast<std::byte*>(call.packed.address),
                        call.range,
                        far};
  stream.launch(packing::blocks_kernel, ByteParameters(work),
                std::array{elements(plan, call), packed(call)});
}

void DevicePacker::run_units(Stream& stream, const Plan& plan, const LoopNest& nest,
                             const Call& call) {
  const std::int64_t size = nest.body_bytes;
  const std::int64_t last_byte = call.range.begin + call.range.bytes - 1;
  // All units of several bodies: the range is whole bodies, but for its ends.
  std::int64_t first = 0;
  auto end = static_cast<std::int64_t>(plan->units.size());
  const std::int64_t bytes_mean = size / end;
  if (call.range.begin / size == last_byte / size) {
    first = unit_of(*plan, call.range.begin % size);
    end = unit_of(*plan, last_byte % size) + 1;
  }
  UnitsWork work;
  work.packs = call.packs;
  work.blocks_max = call.options.blocks_max;
  work.nest = nest;
  work.memory = call.memory;
  work.packed = static_cast<std::byte*>(call.packed.address);
  work.range = call.range;
  work.lanes_log2 = packing::lanes_log2_for(bytes_mean);
  units_.use(stream, plan, first, end,
             [&](const WorkUnit* units, std::int64_t, std::int64_t count) {
               work.units = units;
               work.count = count;
               const KernelMemory list{units, static_cast<std::size_t>(count) * sizeof(WorkUnit),
                                       &device_};
               stream.launch(packing::units_kernel, ByteParameters(work),
                             std::array{elements(*plan, call), packed(call), list});
             });
}

void DevicePacker::transfer(Stream& stream, const LoopShape& from, Source source,
                            const LoopShape& to, Destination memory, const PackOptions& options) {
  packing::BetweenWork work = packing::BetweenWork::of(from, to);
  work.blocks_max = options.blocks_max;
  work.from = static_cast<const std::byte*>(source.address);
  work.to = static_cast<std::byte*>(memory.address);
  if (source.device == nullptr) work.far = FarSide::memory;
  if (memory.device == nullptr) work.far = FarSide::stream;
  const bool has_own_end = source.device == &device_ || memory.device == &device_;
  const bool crosses_link = work.far != FarSide::none && has_own_end;
  const auto columns = crosses_link ? work.columns() : std::nullopt;
  if (columns && are_for_copy_engine(*columns)) {
    return stream.copy_strided({work.to + to.nest.offset, memory.device},
                               {work.from + from.nest.offset, source.device}, *columns);
  }
  stream.launch(packing::between_kernel, ByteParameters(work),
                std::array{KernelMemory{source.address, span_of(from), source.device},
                           KernelMemory{memory.address, span_of(to), memory.device, true}});
}

}  // namespace heddle
