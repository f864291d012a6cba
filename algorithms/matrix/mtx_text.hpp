#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

/// The lines of a text from front to back, counted from 1. A line is handed out without its end and
/// without blanks around it.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  /// Begins at byte `position`, the start of line `line`.
  LineReader(std::string_view text, std::size_t position, std::int64_t line)
      : text_(text), position_(position), line_(line) {}

  [[nodiscard]] bool at_end() const { return position_ >= text_.size(); }
  [[nodiscard]] std::size_t position() const { return position_; }
  /// Number of the line that `next` hands out next.
  [[nodiscard]] std::int64_t line() const { return line_; }

  /// Precondition: not at the end.
  std::string_view next();

  /// Passes over up to `count` lines without looking into them; stops before a line that has no
  /// characters at all. Returns how many lines were passed.
  std::int64_t skip(std::int64_t count);

 private:
  std::string_view text_;
  std::size_t position_ = 0;
  std::int64_t line_ = 1;
};

/// Removes the first word from `line` and returns it; empty when there is none.
[[nodiscard]] std::string_view take_word(std::string_view& line);

/// The whole of `word` as an integer, independent of the locale.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view word);

/// The whole of `word` as a number, independent of the locale; "inf" and "nan" are numbers. What is
/// too small for a double gives 0, what is too large nothing.
[[nodiscard]] std::optional<double> parse_real(std::string_view word);

/// The header of a Matrix Market file.
struct MtxHeader {
  bool is_array = false;  ///< else coordinate
  bool is_integer = false;
  bool is_symmetric = false;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t entries = 0;    ///< lines that follow: of an array all that are stored
  std::size_t body = 0;        ///< position of the first entry in the text
  std::int64_t body_line = 0;  ///< its line
};

/// Reads the banner, the comments and the sizes. Throws Error(usage) that names `path`, the line
/// and the offending word; complex, pattern, skew-symmetric and hermitian files are refused by
/// name.
[[nodiscard]] MtxHeader parse_mtx_header(std::string_view content, const std::string& path);

/// Throws the Error(usage) for what is wrong in `line`.
[[noreturn]] void refuse_mtx_line(const std::string& path, std::int64_t line,
                                  const std::string& reason);

/// `text` for a message: shortened, in quotes.
[[nodiscard]] std::string quote_text(std::string_view text);

}  // namespace heddle
