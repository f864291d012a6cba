#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::replay {

/// A message in Protocol Buffers' wire format, built field by field: a tag (number and type), then
/// a varint, eight bytes, or a length and its bytes. Schema-free.
/// https://protobuf.dev/programming-guides/encoding
///
/// Reuse it: it keeps its memory.
class ProtoMessage {
 public:
  /// uint32, uint64, bool, enum.
  ProtoMessage& number(std::uint32_t field, std::uint64_t value) {
    tag(field, WireType::varint);
    varint(value);
    return *this;
  }
  /// int32, int64: negative values take ten bytes.
  ProtoMessage& integer(std::uint32_t field, std::int64_t value) {
    return number(field, static_cast<std::uint64_t>(value));
  }
  ProtoMessage& fixed64(std::uint32_t field, std::uint64_t value);
  /// string (UTF-8) or bytes.
  ProtoMessage& bytes(std::uint32_t field, std::string_view value) {
    tag(field, WireType::length_delimited);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoMessage& message(std::uint32_t field, const ProtoMessage& value) {
    return bytes(field, value.bytes_);
  }

  [[nodiscard]] std::string_view view() const { return bytes_; }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }

 private:
  enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, length_delimited = 2 };

  void tag(std::uint32_t field, WireType type) {
    varint(std::uint64_t{field} << 3U | static_cast<std::uint64_t>(type));
  }
  /// Seven bits per byte, lowest first; the eighth marks a following byte.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

inline ProtoMessage& ProtoMessage::fixed64(std::uint32_t field, std::uint64_t value) {
  tag(field, WireType::fixed64);
  for (unsigned byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> (8 * byte));
  return *this;
}

}  // namespace heddle::replay
