#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/process_limits.hpp"

/// What subcommands share.
namespace heddle {

/// What any error leaves behind: one that all processes can be told.
template <class Work>
[[nodiscard]] std::optional<Error> trouble_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return as_error(error);
  }
  return std::nullopt;
}

/// To standard output, at once.
inline void print(const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
  static_cast<void>(std::fflush(stdout));
}

}  // namespace heddle
