#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.hpp"
#include "kernels/kernel_case.hpp"

namespace heddle {

/// A case as a key of a table: a kernel, its parameters, and the shapes of its operands, which it
/// owns. Most of a job's tasks share a few.
struct CaseKey {
  static constexpr std::size_t operands_max = 8;

  const Kernel* kernel = nullptr;
  KernelParameters parameters;
  std::size_t operand_count = 0;
  std::array<OperandShape, operands_max> operands{};  ///< zeros behind the last one

  [[nodiscard]] static CaseKey of(const KernelCase& what) {
    HEDDLE_CHECK(what.operands.size() <= operands_max, "{} operands", what.operands.size());
    CaseKey key{what.kernel, what.parameters, what.operands.size(), {}};
    std::ranges::copy(what.operands, key.operands.begin());
    return key;
  }
  /// The shapes are `shape_of(operand)` over a range of the caller's operands.
  template <class Operands, class ShapeOf>
  [[nodiscard]] static CaseKey of(const Kernel& kernel, const KernelParameters& parameters,
                                  const Operands& operands, const ShapeOf& shape_of) {
    HEDDLE_CHECK(operands.size() <= operands_max, "{} operands", operands.size());
    CaseKey key{&kernel, parameters, operands.size(), {}};
    std::ranges::transform(operands, key.operands.begin(), shape_of);
    return key;
  }
  [[nodiscard]] static CaseKey of(const Kernel& kernel, const KernelArguments& arguments) {
    return of(kernel, arguments.parameters, arguments.tiles, [](const TileView& tile) {
      return OperandShape{tile.rows, tile.columns};
    });
  }

  /// Valid as long as this key.
  [[nodiscard]] KernelCase what() const {
    return {kernel, parameters, std::span(operands).first(operand_count)};
  }

  friend bool operator==(const CaseKey&, const CaseKey&) = default;

  struct Hash {
    std::size_t operator()(const CaseKey& key) const {
      std::uint64_t hash = std::bit_cast<std::uintptr_t>(key.kernel);
      const auto mix = [&](std::uint64_t value) {
        hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
        hash ^= hash >> 29U;
      };
      for (const auto word : key.parameters.as<std::array<std::uint64_t, 4>>()) mix(word);
      for (const OperandShape& operand : std::span(key.operands).first(key.operand_count)) {
        mix(static_cast<std::uint64_t>(operand.rows) << 32U |
            static_cast<std::uint64_t>(operand.columns));
      }
      return hash;
    }
  };
};

}  // namespace heddle
