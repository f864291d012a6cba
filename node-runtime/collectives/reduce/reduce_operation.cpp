#include "node-runtime/collectives/reduce/reduce_operation.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/require.hpp"
#include "node-runtime/collectives/reduce/built_in.hpp"
#include "node-runtime/collectives/reduce/piece_reduction.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle {
namespace {

using reduction::BuiltIn;

static_assert(ReduceOperation::inputs_max == reduction::inputs_max);

/// Without an owner: what is built in lives as long as the program.
ReduceOperation operation_of(BuiltIn operation) {
  return ReduceOperation(
      {std::shared_ptr<const reduction::Definition>(), &reduction::built_in(operation)});
}

}  // namespace

ReduceOperation ReduceOperation::sum() {
  return operation_of(BuiltIn::sum);
}
ReduceOperation ReduceOperation::product() {
  return operation_of(BuiltIn::product);
}
ReduceOperation ReduceOperation::minimum() {
  return operation_of(BuiltIn::minimum);
}
ReduceOperation ReduceOperation::maximum() {
  return operation_of(BuiltIn::maximum);
}
ReduceOperation ReduceOperation::minimum_with_index() {
  return operation_of(BuiltIn::minimum_with_index);
}
ReduceOperation ReduceOperation::maximum_with_index() {
  return operation_of(BuiltIn::maximum_with_index);
}
ReduceOperation ReduceOperation::bit_and() {
  return operation_of(BuiltIn::bit_and);
}
ReduceOperation ReduceOperation::bit_or() {
  return operation_of(BuiltIn::bit_or);
}
ReduceOperation ReduceOperation::bit_xor() {
  return operation_of(BuiltIn::bit_xor);
}
ReduceOperation ReduceOperation::logical_and() {
  return operation_of(BuiltIn::logical_and);
}
ReduceOperation ReduceOperation::logical_or() {
  return operation_of(BuiltIn::logical_or);
}
ReduceOperation ReduceOperation::logical_xor() {
  return operation_of(BuiltIn::logical_xor);
}

std::string_view ReduceOperation::name() const {
  return definition_->name;
}

bool ReduceOperation::takes(Scalar scalar) const {
  return definition_->form(scalar).loop != nullptr;
}

bool ReduceOperation::is_exact(Scalar scalar) const {
  return definition_->form(scalar).is_exact;
}

bool ReduceOperation::is_commutative() const {
  return definition_->is_commutative;
}

std::int32_t ReduceOperation::scalars_per_element() const {
  return definition_->scalars_per_element;
}

std::int64_t ReduceOperation::element_bytes(Scalar scalar) const {
  return definition_->scalars_per_element * size_of(scalar);
}

bool ReduceOperation::has_device_form(DeviceBackend backend) const {
  const auto is_for_gpus = [](const reduction::ScalarForm& form) { return form.cuda != nullptr; };
  switch (backend) {
    case DeviceBackend::emulated:
      return definition_->is_for_devices;
    case DeviceBackend::cuda:
      return std::ranges::any_of(definition_->forms, is_for_gpus);
    case DeviceBackend::none:
    case DeviceBackend::automatic:
      return false;
  }
  return false;
}

void ReduceOperation::reduce(Scalar scalar, void* output, std::span<const void* const> inputs,
                             std::int64_t count) const {
  const reduction::PairLoop two = definition_->form(scalar).loop;
  require(two != nullptr, "a reduction by {} of {} elements; it takes none of these", name(),
          name_of(scalar));
  require(!inputs.empty() && inputs.size() <= inputs_max && count >= 0,
          "a reduction of {} elements of {} inputs; 1 to {} inputs can be reduced", count,
          inputs.size(), inputs_max);
  const auto bytes = static_cast<std::size_t>(element_bytes(scalar));
  const void* const functor = definition_->context();
  if (inputs.size() == 1) {
    if (count > 0) std::memmove(output, inputs[0], static_cast<std::size_t>(count) * bytes);
    return;
  }
  if (inputs.size() == 2) return two(functor, output, inputs[0], inputs[1], count);
  const std::array outputs{output};
  reduction::PieceReduction(two, functor, bytes, inputs, outputs).run(count);
}

}  // namespace heddle
