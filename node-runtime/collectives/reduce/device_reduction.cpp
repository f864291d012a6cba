#include "node-runtime/collectives/reduce/device_reduction.hpp"

#include <array>
#include <cstddef>
#include <limits>

#include "base/require.hpp"
#include "node-runtime/collectives/reduce/piece_reduction.hpp"
#include "node-runtime/collectives/reduce/reduction_kernel.hpp"

namespace heddle {
namespace {

using reduction::inputs_max;
using reduction::Work;

bool overlap(const std::byte* a, const std::byte* b, std::int64_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a);
  const auto second = reinterpret_cast<std::uintptr_t>(b);
  const std::uintptr_t distance = first < second ? second - first : first - second;
  return distance < static_cast<std::uintptr_t>(bytes);
}

void require_no_overlap(const Work& work, const ReduceOperation& operation) {
  const std::int64_t bytes = work.count * work.element_bytes;
  for (std::uint32_t o = 0; o < work.output_count; ++o) {
    for (std::uint32_t k = 0; k < work.input_count; ++k) {
      require(work.outputs[o] == work.inputs[k] || !overlap(work.outputs[o], work.inputs[k], bytes),
              "a reduction by {}: output {} overlaps input {}, without being it", operation.name(),
              o, k);
    }
    for (std::uint32_t other = 0; other < o; ++other) {
      require(!overlap(work.outputs[o], work.outputs[other], bytes),
              "a reduction by {}: outputs {} and {} overlap", operation.name(), other, o);
    }
  }
}

}  // namespace

void reduction::reduce_emulated(const ByteParameters& parameters) {
  const Work work = parameters.as<Work>();
  std::array<const void*, inputs_max> inputs{};
  std::array<void*, inputs_max> outputs{};
  std::copy_n(work.inputs, work.input_count, inputs.begin());
  std::copy_n(work.outputs, work.output_count, outputs.begin());
  PieceReduction(work.loop, work.functor.bytes.data(), static_cast<std::size_t>(work.element_bytes),
                 std::span(inputs).first(work.input_count),
                 std::span(outputs).first(work.output_count))
      .run(work.count);
}

void require_device_form(const ReduceOperation& operation, DeviceBackend backend) {
  require(operation.has_device_form(backend),
          "reduce operation {} has no form for devices of the backend {}: on a stream nothing is "
          "brought to the host. For GPUs, make_reduce_operation() has to be compiled by nvcc",
          operation.name(), name_of(backend));
}

void queue_reduction(Stream& stream, const ReduceOperation& operation, Scalar scalar,
                     std::span<const Destination> outputs, std::span<const Source> inputs,
                     std::int64_t count, const ReductionOptions& options) {
  const reduction::Definition& definition = operation.definition();
  const reduction::ScalarForm& form = definition.form(scalar);
  require(form.loop != nullptr, "a reduction by {} of {} elements; it takes none of these",
          operation.name(), name_of(scalar));
  require_device_form(operation, stream.device().info().backend);
  require(!inputs.empty() && inputs.size() <= inputs_max && !outputs.empty() &&
              outputs.size() <= inputs_max,
          "a reduction of {} inputs to {} outputs on a device; 1 to {} are possible of both",
          inputs.size(), outputs.size(), inputs_max);
  const std::int64_t element_bytes = operation.element_bytes(scalar);
  require(count >= 0 && count <= std::numeric_limits<std::int64_t>::max() / element_bytes,
          "a reduction of {} elements of {} bytes on a device", count, element_bytes);
  if (count == 0) return;

  Work work;
  work.count = count;
  work.loop = form.loop;
  work.cuda = form.cuda;
  work.element_bytes = static_cast<std::int32_t>(element_bytes);
  work.blocks_max = options.blocks_max;
  work.functor = definition.functor;
  std::array<KernelMemory, 2 * inputs_max> memory{};
  std::size_t ranges = 0;
  const auto bytes = static_cast<std::size_t>(count * element_bytes);
  for (const Source& input : inputs) {
    work.inputs[work.input_count++] = static_cast<const std::byte*>(input.address);
    memory.at(ranges++) = {input.address, bytes, input.device};
  }
  for (const Destination& output : outputs) {
    work.outputs[work.output_count++] = static_cast<std::byte*>(output.address);
    memory.at(ranges++) = {output.address, bytes, output.device, true};
  }
  require_no_overlap(work, operation);
  stream.launch(reduction::reduce_kernel, ByteParameters(work), std::span(memory).first(ranges));
}

}  // namespace heddle
