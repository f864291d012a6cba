#include "algorithms/matrix/mtx_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/core.h>
#include <system_error>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace heddle {

namespace {

constexpr std::string_view blanks = " \t\r\v\f";

std::string lower_case(std::string_view word) {
  std::string result(word);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

/// What other programs write in place of, or around, a text of ASCII or UTF-8.
void refuse_other_encodings(std::string_view content, const std::string& path) {
  const auto begins = [&](std::string_view bytes) { return content.starts_with(bytes); };
  if (begins("\x1F\x8B") || begins("BZh") ||
      begins("\xFD"
             "7zXZ") ||
      begins("PK\x03\x04")) {
    refuse_mtx_line(path, 1,
                    "the file is compressed; unpack it first (gunzip, bunzip2, unxz, unzip)");
  }
  const std::string_view start = content.substr(0, 8);
  if (begins("\xFF\xFE") || begins("\xFE\xFF") || start.find('\0') != std::string_view::npos) {
    refuse_mtx_line(path, 1,
                    "the text is encoded as UTF-16 or UTF-32; write it as UTF-8 (iconv -t UTF-8)");
  }
  const std::size_t end = content.find_first_of("\r\n");
  if (end != std::string_view::npos && content.find('\n', end) == std::string_view::npos &&
      content[end] == '\r' && end + 1 < content.size()) {
    refuse_mtx_line(path, 1, "lines end with CR alone; end them with LF (tr '\\r' '\\n')");
  }
}

void read_banner(MtxHeader& header, std::string_view line, const std::string& path,
                 std::int64_t number) {
  const std::string_view first = take_word(line);
  if (lower_case(first) != "%%matrixmarket") {
    refuse_mtx_line(path, number,
                    fmt::format("not a Matrix Market file: it begins with {}, not with "
                                "%%MatrixMarket",
                                quote_text(first)));
  }
  const std::string object = lower_case(take_word(line));
  const std::string format = lower_case(take_word(line));
  const std::string field = lower_case(take_word(line));
  const std::string symmetry = lower_case(take_word(line));
  if (object != "matrix") {
    refuse_mtx_line(path, number,
                    fmt::format("the object is {}; expected 'matrix'", quote_text(object)));
  }
  if (format != "array" && format != "coordinate") {
    refuse_mtx_line(
        path, number,
        fmt::format("the format is {}; expected 'array' or 'coordinate'", quote_text(format)));
  }
  const bool is_integer = field == "integer" || field == "unsigned-integer";
  if (field == "pattern") {
    refuse_mtx_line(path, number,
                    "the field is 'pattern', which gives positions without values; only 'real' and "
                    "'integer' can be used");
  }
  if (field != "real" && !is_integer) {
    refuse_mtx_line(
        path, number,
        fmt::format("the field is {}; only 'real' and 'integer' can be used", quote_text(field)));
  }
  if (symmetry != "general" && symmetry != "symmetric") {
    refuse_mtx_line(path, number,
                    fmt::format("the symmetry is {}; only 'general' and 'symmetric' can be used",
                                quote_text(symmetry)));
  }
  if (!line.empty()) {
    refuse_mtx_line(path, number,
                    fmt::format("unexpected {} after the symmetry", quote_text(line)));
  }
  header.is_array = format == "array";
  header.is_integer = is_integer;
  header.is_symmetric = symmetry == "symmetric";
}

std::int64_t read_size(std::string_view& line, const std::string& path, std::int64_t number,
                       std::string_view what) {
  // Large enough for any file, small enough that sums of a few never overflow.
  constexpr std::int64_t size_max = std::int64_t{1} << 60;
  const std::string_view word = take_word(line);
  const IntegerText size = read_integer(word);
  const bool is_large = size.state == RealText::State::too_large || size.value > size_max;
  if (is_large && !word.starts_with('-')) {
    refuse_mtx_line(path, number,
                    fmt::format("the number of {} is {}, which is too large; at most {} can be",
                                what, quote_text(word), size_max));
  }
  if (size.state != RealText::State::fits || size.value < 0) {
    refuse_mtx_line(path, number,
                    fmt::format("the number of {} expected, found {}", what, quote_text(word)));
  }
  return size.value;
}

void read_sizes(MtxHeader& header, std::string_view line, const std::string& path,
                std::int64_t number) {
  header.rows = read_size(line, path, number, "rows");
  header.columns = read_size(line, path, number, "columns");
  if (header.is_symmetric && header.rows != header.columns) {
    refuse_mtx_line(
        path, number,
        fmt::format("a symmetric matrix cannot be {} x {}", header.rows, header.columns));
  }
  std::int64_t elements = 0;
  if (__builtin_mul_overflow(header.rows, header.columns, &elements)) {
    refuse_mtx_line(path, number, fmt::format("{} x {} is too large", header.rows, header.columns));
  }
  if (!header.is_array) {
    header.entries = read_size(line, path, number, "entries");
  } else if (header.is_symmetric) {
    header.entries = (elements - header.rows) / 2 + header.rows;
  } else {
    header.entries = elements;
  }
  if (!line.empty()) {
    refuse_mtx_line(path, number, fmt::format("unexpected {} after the sizes", quote_text(line)));
  }
}

}  // namespace

std::string_view LineReader::rest_of_line() const {
  const void* found = std::memchr(text_.data() + position_, '\n', text_.size() - position_);
  const std::size_t end =
      found == nullptr ? text_.size()
                       : static_cast<std::size_t>(static_cast<const char*>(found) - text_.data());
  return text_.substr(position_, end - position_);
}

/// Goes to the line behind.
void LineReader::pass(std::string_view rest_of_line) {
  position_ = std::min(text_.size(), position_ + rest_of_line.size() + 1);
  ++line_;
}

std::string_view LineReader::next() {
  const std::string_view line = rest_of_line();
  pass(line);
  const std::size_t first = line.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(blanks) + 1 - first);
}

LineReader::Entry LineReader::next_entry() {
  while (!at_end()) {
    const std::int64_t number = line_;
    const std::string_view line = next();
    if (!line.empty() && line.front() != '%') return {line, number};
  }
  return {{}, line_};
}

std::int64_t LineReader::skip(std::int64_t count) {
  std::int64_t passed = 0;
  while (passed < count && !at_end()) {
    const std::string_view line = rest_of_line();
    const std::size_t first = line.find_first_not_of(blanks);
    if (first != std::string_view::npos && line[first] != '%') ++passed;
    pass(line);
  }
  return passed;
}

std::string_view take_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(blanks), line.size());
  const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(std::min(line.find_first_not_of(blanks, end), line.size()));
  return word;
}

IntegerText read_integer(std::string_view word) {
  using State = RealText::State;
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) return {State::too_large, 0};
  return {State::fits, value};
}

RealText read_mtx_real(std::string_view word) {
  const RealText real = read_real(word);
  if (real.state != RealText::State::no_number) return real;
  const std::size_t exponent = word.find_first_of("dD");
  if (exponent == std::string_view::npos || exponent == 0) return real;
  std::string with_e(word);
  with_e[exponent] = 'e';
  return read_real(with_e);
}

MtxHeader parse_mtx_header(std::string_view content, const std::string& path) {
  refuse_other_encodings(content, path);
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  MtxHeader header;
  LineReader lines(content, content.starts_with(byte_order_mark) ? byte_order_mark.size() : 0, 1);
  std::string_view banner;
  std::int64_t number = 1;
  while (banner.empty() && !lines.at_end()) {
    number = lines.line();
    banner = lines.next();
  }
  read_banner(header, banner, path, number);
  const auto [sizes, line] = lines.next_entry();
  if (sizes.empty()) {
    refuse_mtx_line(path, lines.line() - 1, "the file ends before the line with the sizes");
  }
  read_sizes(header, sizes, path, line);
  header.body = lines.position();
  header.body_line = lines.line();
  return header;
}

void refuse_mtx_line(const std::string& path, std::int64_t line, const std::string& reason) {
  throw LineError(fmt::format("cannot read '{}': line {}: {}", printable(path), line, reason),
                  line);
}

std::string quote_text(std::string_view text) {
  constexpr std::size_t length_max = 32;
  if (text.empty()) return "the end of the line";
  return fmt::format("'{}'", printable_start(text, length_max));
}

}  // namespace heddle
