#pragma once

#include <cstring>
#include <type_traits>

#include "node-runtime/device/device.hpp"

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

}  // namespace heddle
