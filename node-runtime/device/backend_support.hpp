#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

#include "node-runtime/device/device.hpp"

/// What the backends of the Device interface share.
namespace heddle {

/// A backend's token as the bytes of a handle.
template <class Token>
[[nodiscard]] IpcToken pack(const Token& token) {
  static_assert(sizeof(Token) <= sizeof(IpcToken) && std::is_trivially_copyable_v<Token>);
  IpcToken bytes{};
  std::memcpy(bytes.data(), &token, sizeof token);
  return bytes;
}

template <class Token>
[[nodiscard]] Token unpack(const IpcToken& bytes) {
  static_assert(sizeof(Token) <= sizeof(IpcToken) && std::is_trivially_copyable_v<Token>);
  Token token{};
  std::memcpy(&token, bytes.data(), sizeof token);
  return token;
}

/// Bytes from the first of a block to behind its last; nullopt when no memory is that large.
[[nodiscard]] inline std::optional<std::size_t> extent(const CopyShape& shape,
                                                       std::size_t leading) {
  std::size_t gaps = 0;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(shape.columns - 1, leading, &gaps) ||
      __builtin_add_overflow(gaps, shape.column_bytes, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace heddle
