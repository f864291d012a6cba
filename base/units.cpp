#include "base/units.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <fmt/core.h>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/real_text.hpp"

namespace heddle {
namespace {

constexpr std::uint64_t size_max = std::uint64_t{1} << 62;

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, units.at(unit));
}

std::string format_seconds(double seconds) {
  if (!(seconds >= 0)) return "-";
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::optional<double> size_from(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 10> units{{{"", 1},
                                                                       {"B", 1},
                                                                       {"kB", 1e3},
                                                                       {"KiB", 1024},
                                                                       {"MB", 1e6},
                                                                       {"MiB", 1048576},
                                                                       {"GB", 1e9},
                                                                       {"GiB", 1073741824},
                                                                       {"TB", 1e12},
                                                                       {"TiB", 1099511627776}}};
  // The unit is the trailing word; an exponent ends in digits.
  std::size_t end = text.size();
  while (end > 0 && std::isalpha(static_cast<unsigned char>(text[end - 1])) != 0) --end;
  const std::string_view unit = std::string_view(text).substr(end);
  while (end > 0 && std::isspace(static_cast<unsigned char>(text[end - 1])) != 0) --end;
  const RealText number = read_real(std::string_view(text).substr(0, end));
  if (number.state == RealText::State::no_number || !(number.value >= 0)) return std::nullopt;
  const bool is_huge = number.state == RealText::State::too_large && !text.starts_with('-');
  for (const auto& [name, factor] : units) {
    if (unit != name) continue;
    return is_huge ? std::numeric_limits<double>::infinity() : number.value * factor;
  }
  return std::nullopt;
}

std::uint64_t parse_bytes(const std::string& text) {
  const auto bytes = size_from(text);
  if (!bytes) {
    throw Error(ErrorCode::usage,
                fmt::format("'{}' is not a size; write a number and a unit, such as 512MiB",
                            printable(text)));
  }
  if (!(*bytes < size_max)) {
    throw Error(ErrorCode::usage, fmt::format("the size '{}' is too large; at most {} can be asked "
                                              "for",
                                              printable(text), format_bytes(size_max)));
  }
  return static_cast<std::uint64_t>(*bytes);
}

}  // namespace heddle
