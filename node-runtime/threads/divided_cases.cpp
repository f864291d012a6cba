#include "node-runtime/threads/divided_cases.hpp"

#include <bit>
#include <cstdint>

namespace heddle {

std::size_t DividedCases::Hash::operator()(const Case& one) const {
  std::size_t hash = std::hash<const void*>{}(one.kernel);
  const auto mix = [&hash](std::int64_t value) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  };
  mix(one.place.value());
  for (const std::int64_t value : one.parameters.as<std::array<std::int64_t, 4>>()) mix(value);
  for (const OperandShape& shape : one.shapes) {
    mix(shape.rows);
    mix(shape.columns);
  }
  return hash;
}

void DividedCases::add(const Kernel& kernel, const KernelParameters& parameters,
                       std::span<const protocol::Access> accesses, const ShapeOf& shape_of) {
  Case one{&kernel, parameters, accesses.front().home.place, accesses.size(), {}};
  if (kernel.fine == nullptr || accesses.size() > one.shapes.size()) return;
  for (std::size_t i = 0; i < accesses.size(); ++i) one.shapes[i] = shape_of(accesses[i].tile);
  Case& last = last_[std::bit_cast<std::uintptr_t>(&kernel) / alignof(Kernel) % last_.size()];
  if (last == one) return;
  last = one;
  all_.insert(one);
}

}  // namespace heddle
