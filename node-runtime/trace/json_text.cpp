#include "node-runtime/trace/json_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>

namespace heddle::trace {

std::string escaped(std::string_view text) {
  const std::string whole =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return whole.substr(1, whole.size() - 2);
}

JsonText& JsonText::operator<<(std::int64_t value) {
  const fmt::format_int digits(value);
  text_.append(digits.data(), digits.size());
  return *this;
}

JsonText& JsonText::operator<<(std::uint64_t value) {
  const fmt::format_int digits(value);
  text_.append(digits.data(), digits.size());
  return *this;
}

JsonText& JsonText::microseconds(std::int64_t ns) {
  if (ns < 0) {
    text_ += '-';
    ns = -ns;
  }
  *this << ns / 1000;
  const auto digit = [](std::int64_t d) { return static_cast<char>('0' + d % 10); };
  const char decimals[] = {'.', digit(ns / 100), digit(ns / 10), digit(ns)};
  text_.append(decimals, sizeof(decimals));
  return *this;
}

void JsonText::hand_over(bool all) {
  if (text_.size() < enough_bytes && !all) return;
  file_.write(std::as_bytes(std::span(text_)));
  text_.clear();
}

}  // namespace heddle::trace
