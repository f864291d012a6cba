#include "algorithms/matrix/mtx_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <system_error>

#include "base/error.hpp"

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

/// from_chars takes no plus sign.
std::string_view without_plus(std::string_view word) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  return word;
}

/// Whether a number that no double holds is too small rather than too large.
bool is_underflow(std::string_view word) {
  const std::size_t exponent = word.find_first_of("eE");
  if (exponent != std::string_view::npos) return word.substr(exponent + 1).starts_with('-');
  const std::size_t digit = word.find_first_not_of("-0");
  return digit == std::string_view::npos || word[digit] == '.';
}

void read_banner(MtxHeader& header, std::string_view line, const std::string& path) {
  const std::string banner = lower_case(take_word(line));
  if (banner != "%%matrixmarket") {
    refuse_mtx_line(path, 1, "not a Matrix Market file: it does not begin with %%MatrixMarket");
  }
  const std::string object = lower_case(take_word(line));
  const std::string format = lower_case(take_word(line));
  const std::string field = lower_case(take_word(line));
  const std::string symmetry = lower_case(take_word(line));
  if (object != "matrix") {
    refuse_mtx_line(path, 1, fmt::format("the object is '{}'; expected 'matrix'", object));
  }
  if (format != "array" && format != "coordinate") {
    refuse_mtx_line(path, 1,
                    fmt::format("the format is '{}'; expected 'array' or 'coordinate'", format));
  }
  if (field != "real" && field != "integer") {
    refuse_mtx_line(path, 1,
                    fmt::format("the field is '{}'; only 'real' and 'integer' can be used", field));
  }
  if (symmetry != "general" && symmetry != "symmetric") {
    refuse_mtx_line(
        path, 1,
        fmt::format("the symmetry is '{}'; only 'general' and 'symmetric' can be used", symmetry));
  }
  if (!take_word(line).empty()) refuse_mtx_line(path, 1, "more than five words");
  header.is_array = format == "array";
  header.is_integer = field == "integer";
  header.is_symmetric = symmetry == "symmetric";
}

std::int64_t read_size(std::string_view& line, const std::string& path, std::int64_t number,
                       std::string_view what) {
  // Large enough for any file, small enough that sums of a few never overflow.
  constexpr std::int64_t size_max = std::int64_t{1} << 60;
  const std::string_view word = take_word(line);
  const auto value = parse_integer(word);
  if (!value || *value < 0 || *value > size_max) {
    refuse_mtx_line(path, number,
                    fmt::format("the number of {} expected, found {}", what, quote_text(word)));
  }
  return *value;
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

std::string_view LineReader::next() {
  const std::size_t found = text_.find('\n', position_);
  const std::size_t end = found == std::string_view::npos ? text_.size() : found;
  std::string_view line = text_.substr(position_, end - position_);
  position_ = found == std::string_view::npos ? end : end + 1;
  ++line_;
  const std::size_t first = line.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(blanks) + 1 - first);
}

std::int64_t LineReader::skip(std::int64_t count) {
  const char* at = text_.data() + position_;
  const char* const end = text_.data() + text_.size();
  std::int64_t passed = 0;
  while (passed < count && at != end && *at != '\n') {
    const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    at = found == nullptr ? end : static_cast<const char*>(found) + 1;
    ++passed;
  }
  position_ = static_cast<std::size_t>(at - text_.data());
  line_ += passed;
  return passed;
}

std::string_view take_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(blanks), line.size());
  const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(std::min(line.find_first_not_of(blanks, end), line.size()));
  return word;
}

std::optional<std::int64_t> parse_integer(std::string_view word) {
  word = without_plus(word);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view word) {
  word = without_plus(word);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    if (!is_underflow(word)) return std::nullopt;
    return std::copysign(0.0, word.starts_with('-') ? -1.0 : 1.0);
  }
  return value;
}

MtxHeader parse_mtx_header(std::string_view content, const std::string& path) {
  MtxHeader header;
  LineReader lines(content);
  read_banner(header, lines.next(), path);
  while (!lines.at_end()) {
    const std::int64_t number = lines.line();
    const std::string_view line = lines.next();
    if (line.empty() || line.front() == '%') continue;
    read_sizes(header, line, path, number);
    header.body = lines.position();
    header.body_line = lines.line();
    return header;
  }
  refuse_mtx_line(path, lines.line() - 1, "the file ends before the line with the sizes");
}

void refuse_mtx_line(const std::string& path, std::int64_t line, const std::string& reason) {
  throw Error(ErrorCode::usage, fmt::format("cannot read '{}': line {}: {}", path, line, reason));
}

std::string quote_text(std::string_view text) {
  constexpr std::size_t length_max = 32;
  if (text.empty()) return "the end of the line";
  if (text.size() <= length_max) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, length_max));
}

}  // namespace heddle
