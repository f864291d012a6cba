#include "node-runtime/trace/text.hpp"

#include <fmt/format.h>
#include <span>

namespace heddle::trace {

Text& Text::operator<<(std::int64_t value) {
  const fmt::format_int digits(value);
  text_.append(digits.data(), digits.size());
  return *this;
}

Text& Text::operator<<(std::uint64_t value) {
  const fmt::format_int digits(value);
  text_.append(digits.data(), digits.size());
  return *this;
}

Text& Text::decimal(std::int64_t value, int decimals) {
  if (value < 0) {
    text_ += '-';
    value = -value;
  }
  std::int64_t unit = 1;
  for (int i = 0; i < decimals; ++i) unit *= 10;
  *this << value / unit << '.';
  while (unit > 1) {
    unit /= 10;
    text_ += static_cast<char>('0' + value / unit % 10);
  }
  return *this;
}

void FileText::hand_over(bool all) {
  if (view().size() < enough_bytes && !all) return;
  file_.write(std::as_bytes(std::span(view())));
  clear();
}

}  // namespace heddle::trace
