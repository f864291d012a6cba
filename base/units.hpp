#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heddle {

[[nodiscard]] constexpr double seconds_of(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

/// `bytes` for a person: "1.50 GiB", "320 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

/// `seconds` for a person: "1.23 s", "4.5 ms", "12 min 3 s".
[[nodiscard]] std::string format_seconds(double seconds);

/// Bytes of a size written by a person: "4GiB", "512 MiB", "100kB", "4096"; unbounded. Nothing if
/// it is not a size.
[[nodiscard]] std::optional<double> size_from(const std::string& text);

/// As size_from() in 64 bits. Throws Error(usage) with the text if it is not a size or too large.
[[nodiscard]] std::uint64_t parse_bytes(const std::string& text);

}  // namespace heddle
