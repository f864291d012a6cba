#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "node-runtime/trace/atomic_file.hpp"

namespace heddle::trace {

/// Builds a text piece by piece, numbers in decimal.
class Text {
 public:
  Text& operator<<(std::string_view piece) {
    text_ += piece;
    return *this;
  }
  Text& operator<<(char piece) {
    text_ += piece;
    return *this;
  }
  Text& operator<<(std::int64_t value);
  Text& operator<<(std::uint64_t value);
  Text& operator<<(std::int32_t value) { return *this << static_cast<std::int64_t>(value); }
  Text& operator<<(std::uint32_t value) { return *this << static_cast<std::uint64_t>(value); }

  /// Nanoseconds as microseconds with three decimals, or as seconds with nine.
  Text& microseconds(std::int64_t ns) { return decimal(ns, 3); }
  Text& seconds(std::int64_t ns) { return decimal(ns, 9); }

  [[nodiscard]] std::string_view view() const { return text_; }
  void clear() { text_.clear(); }

 private:
  Text& decimal(std::int64_t value, int decimals);

  std::string text_;
};

/// A text that is written to a file in pieces.
class FileText : public Text {
 public:
  /// `file` must outlive the text.
  explicit FileText(AtomicFile& file) : file_(file) {}

  /// Call it regularly, and at the end with `all`. Throws as AtomicFile::write().
  void hand_over(bool all = false);

 private:
  static constexpr std::size_t enough_bytes = std::size_t{1} << 18;

  AtomicFile& file_;
};

}  // namespace heddle::trace
