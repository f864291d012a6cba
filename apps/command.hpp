#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/printable.hpp"

/// What subcommands share.
namespace heddle {

/// What any error leaves behind: one that all processes can be told.
template <class Work>
[[nodiscard]] std::optional<Error> trouble_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorCode::internal, error.what());
  }
  return std::nullopt;
}

/// To standard output, at once; what it quotes of inputs is made printable.
inline void print(const std::string& message) {
  const std::string text = printable(message, LineBreaks::kept);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
  static_cast<void>(std::fflush(stdout));
}

}  // namespace heddle
