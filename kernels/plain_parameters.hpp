#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace heddle {

/// A plain value of at most `bytes_max` bytes; its reader knows the type.
template <std::size_t bytes_max>
class PlainParameters {
 public:
  static constexpr std::size_t size_max = bytes_max;

  PlainParameters() = default;

  template <class T>
  requires(sizeof(T) <= size_max && std::is_trivially_copyable_v<T> &&
           !std::is_same_v<T, PlainParameters>) explicit PlainParameters(const T& value) {
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }

  template <class T>
  requires(sizeof(T) <= size_max && std::is_trivially_copyable_v<T>) [[nodiscard]] T as() const {
    T value{};
    std::memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }

  friend bool operator==(const PlainParameters&, const PlainParameters&) = default;

 private:
  alignas(8) std::array<std::byte, size_max> bytes_{};
};

}  // namespace heddle
