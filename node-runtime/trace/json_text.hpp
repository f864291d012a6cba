#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "node-runtime/trace/atomic_file.hpp"

namespace heddle::trace {

/// `text` as it has to be inside a JSON string; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

/// Builds JSON piece by piece and hands it to the file whenever there is enough. Knows no JSON
/// itself: the caller puts pieces that fit together.
class JsonText {
 public:
  explicit JsonText(AtomicFile& file) : file_(file) {}

  JsonText& operator<<(std::string_view piece) {
    text_ += piece;
    return *this;
  }
  JsonText& operator<<(char piece) {
    text_ += piece;
    return *this;
  }
  JsonText& operator<<(std::int64_t value);
  JsonText& operator<<(std::uint64_t value);
  JsonText& operator<<(std::int32_t value) { return *this << static_cast<std::int64_t>(value); }
  JsonText& operator<<(std::uint32_t value) { return *this << static_cast<std::uint64_t>(value); }

  /// Nanoseconds as microseconds with three decimals.
  JsonText& microseconds(std::int64_t ns);

  /// To be called now and then, and at the end with `all`.
  void hand_over(bool all = false);

 private:
  static constexpr std::size_t enough_bytes = std::size_t{1} << 18;

  AtomicFile& file_;
  std::string text_;
};

}  // namespace heddle::trace
