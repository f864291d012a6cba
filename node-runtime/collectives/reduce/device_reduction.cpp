#include "node-runtime/collectives/reduce/device_reduction.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>

#include "base/require.hpp"
#include "node-runtime/collectives/reduce/piece_reduction.hpp"
#include "node-runtime/collectives/reduce/reduction_kernel.hpp"

namespace heddle {
namespace {

using reduction::Arrangement;
using reduction::inputs_max;
using reduction::Work;

/// From an address to behind its last element.
std::int64_t span_of(const Arrangement& arrangement, std::int64_t bytes) {
  return arrangement.place_of(bytes - 1) + 1;
}

void require_no_overlap(const Work& work, const ReduceOperation& operation) {
  const std::int64_t bytes = work.count * work.element_bytes;
  for (std::uint32_t o = 0; o < work.output_count; ++o) {
    const ArrangedMemory output{work.outputs[o], work.out, bytes};
    for (std::uint32_t k = 0; k < work.input_count; ++k) {
      const bool is_same = work.outputs[o] == work.inputs[k] && work.in == work.out;
      require(is_same || !may_overlap(output, {work.inputs[k], work.in, bytes}),
              "a reduction by {}: output {} overlaps input {}, without being it", operation.name(),
              o, k);
    }
    for (std::uint32_t other = 0; other < o; ++other) {
      require(!may_overlap(output, {work.outputs[other], work.out, bytes}),
              "a reduction by {}: outputs {} and {} overlap", operation.name(), other, o);
    }
  }
}

void require_whole_elements(const Arrangement& side, std::int64_t element_bytes) {
  const auto& [rows, first] = side;
  require(rows.bytes >= 0 && first >= 0 && side.has_whole(element_bytes),
          "a reduction of elements of {} bytes in rows of {} bytes, each {} longer than the one "
          "before, behind {} bytes: elements do not lie in one row each",
          element_bytes, rows.bytes, rows.step, first);
}

}  // namespace

void reduction::reduce_emulated(const ByteParameters& parameters) {
  const Work work = parameters.as<Work>();
  std::array<const void*, inputs_max> inputs{};
  std::array<void*, inputs_max> outputs{};
  // As far as a row of the inputs and one of the outputs go.
  const std::int64_t bytes = work.count * work.element_bytes;
  for (std::int64_t at = 0, some = 0; at < bytes; at += some) {
    some =
        std::min({bytes - at, work.in.bytes_behind(at, bytes), work.out.bytes_behind(at, bytes)});
    for (std::uint32_t k = 0; k < work.input_count; ++k) {
      inputs.at(k) = work.inputs[k] + work.in.place_of(at);
    }
    for (std::uint32_t o = 0; o < work.output_count; ++o) {
      outputs.at(o) = work.outputs[o] + work.out.place_of(at);
    }
    PieceReduction(
        work.loop, work.functor.bytes.data(), static_cast<std::size_t>(work.element_bytes),
        std::span(inputs).first(work.input_count), std::span(outputs).first(work.output_count))
        .run(some / work.element_bytes);
  }
}

bool may_overlap(const ArrangedMemory& a, const ArrangedMemory& b) {
  // As integers: pointers into different memory cannot be subtracted.
  const auto first_a = std::bit_cast<std::int64_t>(a.address);
  const auto first_b = std::bit_cast<std::int64_t>(b.address);
  const bool is_apart = first_a + span_of(a.arrangement, a.bytes) <= first_b ||
                        first_b + span_of(b.arrangement, b.bytes) <= first_a;
  if (is_apart) return false;
  const reduction::Rows& rows = a.arrangement.rows;
  if (rows.bytes == 0 || rows.step != 0 || !(rows == b.arrangement.rows)) return true;
  const std::int64_t distance = ((first_b - first_a) % rows.stride + rows.stride) % rows.stride;
  return distance < rows.bytes || distance + rows.bytes > rows.stride;
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
  work.in = options.inputs;
  work.out = options.outputs;
  require_whole_elements(work.in, element_bytes);
  require_whole_elements(work.out, element_bytes);
  std::array<KernelMemory, 2 * inputs_max> memory{};
  std::size_t ranges = 0;
  const auto span = [&](const Arrangement& side) {
    return static_cast<std::size_t>(span_of(side, count * element_bytes));
  };
  for (const Source& input : inputs) {
    work.inputs[work.input_count++] = static_cast<const std::byte*>(input.address);
    memory.at(ranges++) = {input.address, span(work.in), input.device};
  }
  for (const Destination& output : outputs) {
    work.outputs[work.output_count++] = static_cast<std::byte*>(output.address);
    memory.at(ranges++) = {output.address, span(work.out), output.device, true};
  }
  require_no_overlap(work, operation);
  stream.launch(reduction::reduce_kernel, ByteParameters(work), std::span(memory).first(ranges));
}

}  // namespace heddle
