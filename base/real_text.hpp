#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

/// A number read from text, as a double.
struct RealText {
  enum class State : std::uint8_t {
    fits,
    too_large,  ///< for a double; `value` is 0
    too_small,  ///< rounds to 0; `value` is 0 with the sign
    no_number,
  };
  State state = State::no_number;
  double value = 0;
};

/// Parses the whole of `word` as a decimal number, independent of the locale; "inf" and "nan" are
/// numbers.
[[nodiscard]] RealText read_real(std::string_view word);

}  // namespace heddle
