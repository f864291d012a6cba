#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

/// What becomes of line breaks in a text for a person: those of an input would forge a line of
/// their own, those of a message belong to it.
enum class LineBreaks : std::uint8_t { escaped, kept };

/// `text` as a terminal may show it: control characters, and bytes that are no UTF-8, are written
/// as in C, \n or \x1B. All else stays.
[[nodiscard]] std::string printable(std::string_view text,
                                    LineBreaks line_breaks = LineBreaks::escaped);

/// The same, and of at most `characters_max` characters of `text`, with "..." behind where there
/// are more.
[[nodiscard]] std::string printable_start(std::string_view text, std::size_t characters_max);

/// Bytes of the UTF-8 sequence at `text[at]`, or 0 when there is none.
[[nodiscard]] std::size_t utf8_sequence_size(std::string_view text, std::size_t at);

/// True of the sequence at `text[at]` when it is no UTF-8 or a control character, those of ISO 6429
/// from U+0080 to U+009F included.
[[nodiscard]] bool is_control(std::string_view text, std::size_t at);

}  // namespace heddle
