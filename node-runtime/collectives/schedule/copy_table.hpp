#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "node-runtime/collectives/schedule/choice.hpp"

namespace heddle::collectives {

/// How a rank copies to or from a buffer on another rank's device, or its own rank's copies there.
enum class CopyType : std::uint8_t { mapped, staged };
[[nodiscard]] constexpr CopyType other(CopyType type) {
  return type == CopyType::mapped ? CopyType::staged : CopyType::mapped;
}

/// What is known of copies between ranks that share a GPU (002 section 5.2.1): how many of a stage
/// are to be staged, for each operation, number of ranks and size. Pure.
struct CopyTable {
  struct Row {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::int32_t ranks = 2;   ///< of them ranks - 1 copy
    std::int64_t bytes = 0;   ///< of each, at most
    std::int32_t staged = 0;  ///< copies
    friend bool operator==(const Row&, const Row&) = default;
  };
  std::vector<Row> rows;

  /// One copy alone, in seconds.
  struct Rate {
    double start_s = 0;
    double bytes_per_s = 1;
    [[nodiscard]] double seconds(double bytes) const { return start_s + bytes / bytes_per_s; }
    friend bool operator==(const Rate&, const Rate&) = default;
  };
  /// By CopyType; nothing: not measured.
  std::optional<std::array<Rate, 2>> rates;

  /// Copies of a stage that are to be staged, by the rows of the operation with the next number of
  /// ranks, of which other numbers have the same share; by the row of the next larger size, or the
  /// largest one. Nothing: the operation has no row.
  [[nodiscard]] std::optional<std::int32_t> staged(CollectiveKind kind, std::int32_t ranks,
                                                   std::int64_t bytes) const;
  /// The type that takes less than half of the other one's time, alone; nothing: neither, or not
  /// measured.
  [[nodiscard]] std::optional<CopyType> faster(std::int64_t bytes) const;
};

/// What 002 tells of K80 GPUs with 16 ranks (sections 5.2.1, 5.3.1, 5.3.3), and steps between: all
/// copies are staged up to 8 KiB, none beyond 256 KiB. For machines without a table of their own.
[[nodiscard]] CopyTable published_copy_table();

}  // namespace heddle::collectives
