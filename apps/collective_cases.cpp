#include "apps/collective_cases.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle {

std::vector<CollectiveCase> collective_cases(std::span<const std::string> operations,
                                             std::int64_t bytes_min, std::int64_t bytes_max) {
  std::vector<CollectiveCase> cases;
  for (const std::string_view name : collective_names) {
    if (!operations.empty() && std::ranges::find(operations, name) == operations.end()) continue;
    if (name == "barrier") {
      cases.push_back({std::string(name), 0});
      continue;
    }
    for (std::int64_t bytes = bytes_min; bytes <= bytes_max; bytes *= 4) {
      cases.push_back({std::string(name), bytes});
    }
  }
  return cases;
}

void check_collective_cases(std::span<const std::string> operations, std::int64_t bytes_min,
                            std::int64_t bytes_max) {
  for (const std::string& name : operations) {
    if (std::ranges::find(collective_names, name) != std::end(collective_names)) continue;
    throw Error(ErrorCode::usage, fmt::format("--operation {}: expected one of {}", name,
                                              fmt::join(collective_names, ", ")));
  }
  if (bytes_max < bytes_min) {
    throw Error(ErrorCode::usage,
                fmt::format("--bytes-max {} is less than --bytes-min {}", bytes_max, bytes_min));
  }
}

std::optional<BytesRange> bytes_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto min = size_from(text.substr(0, colon));
  const auto max = colon == std::string::npos ? min : size_from(text.substr(colon + 1));
  constexpr double bytes_most = 1 << 30;
  if (!min || !max || *min < 8 || *max > bytes_most || *max < *min) return std::nullopt;
  return BytesRange{static_cast<std::int64_t>(*min), static_cast<std::int64_t>(*max)};
}

double bus_bytes(const CollectiveCase& one, int ranks) {
  const double n = ranks;
  double factor = 1;
  auto all = static_cast<double>(one.bytes);
  const std::string& operation = one.operation;
  if (operation == "all_reduce") factor = 2 * (n - 1) / n;
  if (operation == "scatter" || operation == "gather" || operation == "all_gather" ||
      operation == "reduce_scatter" || operation == "all_to_all") {
    factor = (n - 1) / n;
    all *= n;
  }
  return factor * all;
}

double bus_gb_per_second(const CollectiveCase& one, double us, int ranks) {
  return bus_bytes(one, ranks) / us / 1e3;
}

}  // namespace heddle
