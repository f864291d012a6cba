#include "base/units.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <fmt/core.h>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace heddle {

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

std::uint64_t parse_bytes(const std::string& text) {
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
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used > 0 && std::isfinite(number) && number >= 0) {
    while (used < text.size() && std::isspace(static_cast<unsigned char>(text[used])) != 0) ++used;
    const std::string_view rest = std::string_view(text).substr(used);
    for (const auto& [name, factor] : units) {
      if (rest == name && number * factor < 9e18) {
        return static_cast<std::uint64_t>(number * factor);
      }
    }
  }
  throw Error(ErrorCode::usage,
              fmt::format("'{}' is not a size; write a number and a unit, such as 512MiB", text));
}

}  // namespace heddle
