#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/real_text.hpp"

namespace heddle {

/// The lines of a text from front to back, counted from 1. A line is handed out without its end and
/// without blanks around it. What carries no entry, blank lines and comments (from % on), may stand
/// anywhere.
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

  /// A line with an entry, and its number.
  struct Entry {
    std::string_view text;  ///< empty: there is none up to the end
    std::int64_t line = 0;  ///< without an entry: the one behind the last
  };
  Entry next_entry();

  /// Passes over up to `count` entries without reading them. Returns how many were passed: fewer
  /// where the text ends.
  std::int64_t skip(std::int64_t count);

 private:
  [[nodiscard]] std::string_view rest_of_line() const;
  void pass(std::string_view rest_of_line);

  std::string_view text_;
  std::size_t position_ = 0;
  std::int64_t line_ = 1;
};

/// Removes the first word from `line` and returns it; empty when there is none.
[[nodiscard]] std::string_view take_word(std::string_view& line);

/// An integer of 64 bits, as RealText tells it.
struct IntegerText {
  RealText::State state = RealText::State::no_number;
  std::int64_t value = 0;
};

/// The whole of `word` as an integer, independent of the locale.
[[nodiscard]] IntegerText read_integer(std::string_view word);

/// The whole of `word` as a number, as read_real() does; an exponent may be written with D, as
/// Fortran does.
[[nodiscard]] RealText read_mtx_real(std::string_view word);

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

/// Reads the banner, the comments and the sizes; a UTF-8 byte order mark may come first. Throws
/// Error(usage) that names `path`, the line and the offending word; complex, pattern,
/// skew-symmetric and hermitian files, other encodings and compressed files are refused by name.
[[nodiscard]] MtxHeader parse_mtx_header(std::string_view content, const std::string& path);

/// What is wrong with a line of a text, which all nodes can find, each in the lines that it reads:
/// that with the lowest line is what one node would find.
class LineError : public Error {
 public:
  LineError(const std::string& message, std::int64_t line)
      : Error(ErrorCode::usage, message), line_(line) {}

  [[nodiscard]] std::int64_t line() const { return line_; }

 private:
  std::int64_t line_;
};

/// Throws the LineError for what is wrong in `line`.
[[noreturn]] void refuse_mtx_line(const std::string& path, std::int64_t line,
                                  const std::string& reason);

/// `text` for a message: shortened, in quotes.
[[nodiscard]] std::string quote_text(std::string_view text);

}  // namespace heddle
