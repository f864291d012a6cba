#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernel_case.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// A case as a key of a table: a kernel, its parameters, and the shapes of its operands.
struct CaseKey {
  const Kernel* kernel = nullptr;
  std::array<std::uint64_t, 4> parameters{};
  std::array<OperandShape, protocol::accesses_max> operands{};
  std::size_t operand_count = 0;

  [[nodiscard]] static CaseKey of(const KernelCase& what) {
    CaseKey key;
    key.kernel = what.kernel;
    key.parameters = std::bit_cast<std::array<std::uint64_t, 4>>(what.parameters);
    for (const OperandShape& shape : what.operands) key.operands.at(key.operand_count++) = shape;
    return key;
  }
  [[nodiscard]] KernelCase as_case() const {
    return {kernel, std::bit_cast<KernelParameters>(parameters),
            std::span(operands).first(operand_count)};
  }
  friend bool operator==(const CaseKey&, const CaseKey&) = default;
};

struct CaseKeyHash {
  std::size_t operator()(const CaseKey& key) const {
    std::uint64_t hash = std::bit_cast<std::uintptr_t>(key.kernel);
    const auto mix = [&](std::uint64_t value) {
      hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29U;
    };
    for (const std::uint64_t word : key.parameters) mix(word);
    for (const OperandShape& operand : key.operands) {
      mix(static_cast<std::uint64_t>(operand.rows) << 32U |
          static_cast<std::uint64_t>(operand.columns));
    }
    return hash;
  }
};

}  // namespace heddle
