#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

/// A number that was written by a person or a program, as a double.
struct RealText {
  enum class State : std::uint8_t {
    fits,
    too_large,  ///< for a double; `value` is 0
    too_small,  ///< nearer to 0 than any double but 0, which `value` is, with the sign
    no_number,
  };
  State state = State::no_number;
  double value = 0;
};

/// The whole of `word` as a number in base 10, independent of the locale; "inf" and "nan" are
/// numbers.
[[nodiscard]] RealText read_real(std::string_view word);

}  // namespace heddle
