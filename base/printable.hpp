#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

/// Line breaks of an input could forge a line of output and are escaped; those of a message are
/// kept.
enum class LineBreaks : std::uint8_t { escaped, kept };

/// `text` safe for a terminal: control characters and bytes that are not UTF-8 are written as in C,
/// \n or \x1B.
[[nodiscard]] std::string printable(std::string_view text,
                                    LineBreaks line_breaks = LineBreaks::escaped);

/// As printable(), cut to `characters_max` characters with "..." appended if `text` is longer.
[[nodiscard]] std::string printable_start(std::string_view text, std::size_t characters_max);

/// Bytes of the UTF-8 sequence at `text[at]`, or 0 if it is not valid UTF-8.
[[nodiscard]] std::size_t utf8_sequence_size(std::string_view text, std::size_t at);

/// True if the sequence at `text[at]` is not UTF-8 or is a control character, including U+0080 to
/// U+009F.
[[nodiscard]] bool is_control(std::string_view text, std::size_t at);

}  // namespace heddle
