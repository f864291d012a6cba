#include "base/real_text.hpp"

#include <charconv>
#include <cmath>
#include <system_error>

namespace heddle {
namespace {

/// from_chars takes no plus sign.
std::string_view without_plus(std::string_view word) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  return word;
}

/// Whether an out-of-range number is too small rather than too large.
bool is_underflow(std::string_view word) {
  const std::size_t exponent = word.find_first_of("eE");
  if (exponent != std::string_view::npos) return word.substr(exponent + 1).starts_with('-');
  const std::size_t digit = word.find_first_not_of("-0");
  return digit == std::string_view::npos || word[digit] == '.';
}

}  // namespace

RealText read_real(std::string_view word) {
  using State = RealText::State;
  word = without_plus(word);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || error == std::errc::invalid_argument) return {};
  if (error != std::errc::result_out_of_range) return {State::fits, value};
  if (!is_underflow(word)) return {State::too_large, 0};
  return {State::too_small, std::copysign(0.0, word.starts_with('-') ? -1.0 : 1.0)};
}

}  // namespace heddle
