#include "base/printable.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <limits>

namespace heddle {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

std::string escaped(std::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\r") return "\\r";
  if (bytes == "\t") return "\\t";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) out += fmt::format("\\x{:02X}", byte_at(bytes, i));
  return out;
}

std::string start_of(std::string_view text, LineBreaks line_breaks, std::size_t characters_max) {
  std::string out;
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++characters) {
    if (characters == characters_max) return out + "...";
    const std::size_t size = std::max<std::size_t>(utf8_sequence_size(text, at), 1);
    const std::string_view sequence = text.substr(at, size);
    const bool is_kept = line_breaks == LineBreaks::kept && sequence == "\n";
    out += is_control(text, at) && !is_kept ? escaped(sequence) : std::string(sequence);
    at += size;
  }
  return out;
}

}  // namespace

std::size_t utf8_sequence_size(std::string_view text, std::size_t at) {
  const unsigned lead = byte_at(text, at);
  const std::size_t size = lead < 0x80                   ? 1
                           : lead >= 0xC2 && lead < 0xE0 ? 2
                           : lead >= 0xE0 && lead < 0xF0 ? 3
                           : lead >= 0xF0 && lead < 0xF5 ? 4
                                                         : 0;
  if (size == 0 || at + size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte_at(text, at + i) & 0xC0U) != 0x80) return 0;
  }
  return size;
}

bool is_control(std::string_view text, std::size_t at) {
  const unsigned lead = byte_at(text, at);
  const std::size_t size = utf8_sequence_size(text, at);
  const bool is_iso_6429 = size == 2 && lead == 0xC2 && byte_at(text, at + 1) < 0xA0;
  return size == 0 || lead < 0x20 || lead == 0x7F || is_iso_6429;
}

std::string printable(std::string_view text, LineBreaks line_breaks) {
  return start_of(text, line_breaks, std::numeric_limits<std::size_t>::max());
}

std::string printable_start(std::string_view text, std::size_t characters_max) {
  return start_of(text, LineBreaks::escaped, characters_max);
}

}  // namespace heddle
