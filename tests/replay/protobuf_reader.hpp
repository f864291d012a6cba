#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::replay::test {

/// A message in Protocol Buffers' wire format, taken apart. Throws std::runtime_error where it is
/// none.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) {
    while (!bytes.empty()) {
      Field field;
      const std::uint64_t tag = varint(bytes);
      field.number = tag >> 3U;
      if (field.number == 0) throw std::runtime_error("field 0");
      switch (tag & 7U) {
        case 0:
          field.value = varint(bytes);
          break;
        case 1:
          for (unsigned i = 0; i < 8; ++i) {
            field.value |= std::uint64_t{static_cast<unsigned char>(take(bytes, 1)[0])} << (8 * i);
          }
          break;
        case 2:
          field.bytes = take(bytes, varint(bytes));
          break;
        default:
          throw std::runtime_error("a wire type that nobody writes");
      }
      fields_.push_back(field);
    }
  }

  [[nodiscard]] std::vector<std::uint64_t> numbers(std::uint64_t field) const {
    std::vector<std::uint64_t> found;
    for (const Field& f : fields_) {
      if (f.number == field) found.push_back(f.value);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> texts(std::uint64_t field) const {
    std::vector<std::string> found;
    for (const Field& f : fields_) {
      if (f.number == field) found.emplace_back(f.bytes);
    }
    return found;
  }
  [[nodiscard]] std::vector<ProtoReader> messages(std::uint64_t field) const {
    std::vector<ProtoReader> found;
    for (const Field& f : fields_) {
      if (f.number == field) found.emplace_back(f.bytes);
    }
    return found;
  }
  /// The only one; throws where there are several.
  [[nodiscard]] std::optional<std::uint64_t> number(std::uint64_t field) const {
    return only(numbers(field));
  }
  [[nodiscard]] std::optional<std::string> text(std::uint64_t field) const {
    return only(texts(field));
  }
  [[nodiscard]] std::optional<ProtoReader> message(std::uint64_t field) const {
    return only(messages(field));
  }

 private:
  struct Field {
    std::uint64_t number = 0;
    std::uint64_t value = 0;
    std::string_view bytes;
  };

  static std::string_view take(std::string_view& bytes, std::uint64_t count) {
    if (count > bytes.size()) throw std::runtime_error("a field ends too early");
    const std::string_view taken = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return taken;
  }
  static std::uint64_t varint(std::string_view& bytes) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(bytes, 1)[0]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    throw std::runtime_error("a varint of more than ten bytes");
  }
  template <class T>
  static std::optional<T> only(std::vector<T> found) {
    if (found.size() > 1) throw std::runtime_error("a field that is there twice");
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  }

  std::vector<Field> fields_;
};

}  // namespace heddle::replay::test
