#include "algorithms/matrix/npy_header.hpp"

#include <charconv>
#include <fmt/format.h>
#include <system_error>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"

namespace heddle {

namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};
constexpr std::string_view float64 = "<f8";
constexpr std::string_view big_endian_float64 = ">f8";
constexpr std::string_view native_float64 = "=f8";

[[noreturn]] void refuse_header(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::usage, fmt::format("cannot read '{}': {}", printable(path), reason));
}

/// "float32" for "<f4"; the text itself for what is not a plain number.
std::string dtype_name(std::string_view descr) {
  if (descr.size() < 3) return std::string(descr);
  std::string_view kind;
  switch (descr[1]) {
    case 'f':
      kind = "float";
      break;
    case 'i':
      kind = "int";
      break;
    case 'u':
      kind = "uint";
      break;
    case 'c':
      kind = "complex";
      break;
    case 'b':
      return "bool";
    default:
      return std::string(descr);
  }
  int bytes = 0;
  const char* end = descr.data() + descr.size();
  if (std::from_chars(descr.data() + 2, end, bytes).ptr != end || bytes > 64) {
    return std::string(descr);
  }
  return fmt::format("{}{}{}", descr[0] == '>' ? "big-endian " : "", kind, bytes * 8);
}

/// Reads the Python dictionary of a header from left to right.
class DictionaryReader {
 public:
  DictionaryReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  NpyHeader read() {
    NpyHeader header;
    expect('{', "'{'");
    while (!take('}')) {
      const std::string_view key = quoted("a key in quotes");
      expect(':', "':'");
      if (key == "descr") {
        note(key, seen_descr_);
        header.big_endian = read_descr();
      } else if (key == "fortran_order") {
        note(key, seen_order_);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        note(key, seen_shape_);
        header.shape = shape();
      } else {
        refuse_header(path_,
                      fmt::format("its .npy header has the unknown key '{}'", printable(key)));
      }
      if (!take(',')) {
        expect('}', "',' or '}'");
        break;
      }
    }
    skip_spaces();
    if (position_ != text_.size()) fail("nothing but spaces after the dictionary");
    if (!seen_descr_) refuse_header(path_, "its .npy header lacks the key 'descr'");
    if (!seen_order_) refuse_header(path_, "its .npy header lacks the key 'fortran_order'");
    if (!seen_shape_) refuse_header(path_, "its .npy header lacks the key 'shape'");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    const std::string_view rest = text_.substr(position_, 24);
    refuse_header(
        path_,
        fmt::format(
            "its .npy header is malformed at character {}: expected {}, found {}; write the "
            "file with numpy.save",
            position_, expected, rest.empty() ? "the end" : fmt::format("'{}'", printable(rest))));
  }

  void note(std::string_view key, bool& seen) const {
    if (seen) refuse_header(path_, fmt::format("its .npy header has the key '{}' twice", key));
    seen = true;
  }

  void skip_spaces() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n' ||
                                        text_[position_] == '\t' || text_[position_] == '\r')) {
      ++position_;
    }
  }

  bool take(char c) {
    skip_spaces();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!take(c)) fail(what);
  }

  std::string_view quoted(std::string_view what) {
    skip_spaces();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') fail(what);
    const std::size_t begin = position_ + 1;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail("a closing quote");
    position_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  /// True of a big-endian type.
  bool read_descr() {
    skip_spaces();
    if (position_ < text_.size() && text_[position_] == '[') {
      refuse_header(path_, "its elements are records; only float64 ('<f8') can be used");
    }
    const std::string_view descr = quoted("a data type in quotes");
    if (descr == big_endian_float64) return true;
    for (const std::string_view known : {float64, native_float64, std::string_view("f8")}) {
      if (descr == known) return false;
    }
    refuse_header(path_, fmt::format("its elements are {} ('{}'); only float64 ('<f8' and '>f8') "
                                     "can be used, convert with astype('<f8')",
                                     printable(dtype_name(descr)), printable(descr)));
  }

  bool boolean() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view name = value ? "True" : "False";
      if (text_.substr(position_).starts_with(name)) {
        position_ += name.size();
        return value;
      }
    }
    fail("True or False as the value of 'fortran_order'");
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> lengths;
    expect('(', "'(' of the shape");
    while (!take(')')) {
      lengths.push_back(length());
      if (take(',')) continue;
      expect(')', "',' or ')'");
      // Python writes a tuple of one as (7,); (7) would be a number.
      if (lengths.size() == 1) fail("',' after the only length of the shape");
      break;
    }
    return lengths;
  }

  std::int64_t length() {
    skip_spaces();
    std::int64_t value = -1;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) fail("a length of the shape");
    position_ += static_cast<std::size_t>(end - begin);
    if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // written by Python 2
    return value;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t position_ = 0;
  bool seen_descr_ = false;
  bool seen_order_ = false;
  bool seen_shape_ = false;
};

std::size_t byte_at(std::string_view content, std::size_t i) {
  return static_cast<unsigned char>(content[i]);
}

}  // namespace

NpyHeader parse_npy_header(std::string_view content, const std::string& path) {
  if (!content.starts_with(magic)) {
    if (magic.starts_with(content))
      refuse_header(path, "the .npy file ends within its first 6 bytes");
    if (content.starts_with("PK\x03\x04")) {
      refuse_header(path, "it is an archive of arrays (.npz); write the one array with numpy.save");
    }
    refuse_header(path,
                  "it is not a .npy file: it does not begin with \\x93NUMPY; write it with "
                  "numpy.save");
  }
  if (content.size() < 8) refuse_header(path, "the .npy file ends before its format version");
  const std::size_t major = byte_at(content, 6);
  const std::size_t minor = byte_at(content, 7);
  if (major < 1 || major > 3 || minor != 0) {
    refuse_header(
        path, fmt::format("its .npy format version is {}.{}; 1.0, 2.0 and 3.0 can be read", major,
                          minor));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t begin = 8 + length_bytes;
  std::size_t length = 0;
  if (content.size() >= begin) {
    for (std::size_t i = 0; i < length_bytes; ++i) length |= byte_at(content, 8 + i) << (8 * i);
  }
  if (content.size() < begin + length) {
    refuse_header(path,
                  fmt::format("its .npy header is truncated: {} bytes expected, the file has {}",
                              begin + length, content.size()));
  }
  NpyHeader header = DictionaryReader(content.substr(begin, length), path).read();
  header.data_offset = begin + length;
  return header;
}

std::string format_npy_shape(const std::vector<std::int64_t>& shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape, ", "));
}

std::string format_npy_header(const std::vector<std::int64_t>& shape) {
  HEDDLE_CHECK(shape.size() <= 2, "{} dimensions", shape.size());
  constexpr std::size_t begin = 10;
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(npy_header_size - begin), '\x00'};
  header += fmt::format("{{'descr': '{}', 'fortran_order': True, 'shape': {}, }}", float64,
                        format_npy_shape(shape));
  header.resize(npy_header_size - 1, ' ');
  header += '\n';
  return header;
}

}  // namespace heddle
