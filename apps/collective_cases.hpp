#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The rows of `heddle bench collectives`, wherever they run.
namespace heddle {

inline constexpr std::string_view collective_names[] = {
    "barrier", "broadcast",  "scatter",        "gather",     "all_gather",
    "reduce",  "all_reduce", "reduce_scatter", "all_to_all", "scan"};

/// What one row is about.
struct CollectiveCase {
  std::string operation;
  std::int64_t bytes = 0;  ///< of a rank's block; 0: it has none
};
/// The operations named, all if none is, in the order of collective_names; each with sizes that are
/// four times the one before.
[[nodiscard]] std::vector<CollectiveCase> collective_cases(std::span<const std::string> operations,
                                                           std::int64_t bytes_min,
                                                           std::int64_t bytes_max);

/// Throws Error(usage) for an operation that there is not, or sizes in the wrong order.
void check_collective_cases(std::span<const std::string> operations, std::int64_t bytes_min,
                            std::int64_t bytes_max);

struct BytesRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};
/// The range of "8:16MiB", or of "4KiB", that one size. Nothing for another text, and for sizes
/// below 8 B or above 1 GiB.
[[nodiscard]] std::optional<BytesRange> bytes_range(const std::string& text);

/// Bytes that pass each link at least: the usual factors.
[[nodiscard]] double bus_bytes(const CollectiveCase& one, int ranks);
/// The same over the time.
[[nodiscard]] double bus_gb_per_second(const CollectiveCase& one, double us, int ranks);

}  // namespace heddle
