#pragma once

#include <exception>
#include <optional>

#include "apps/terminal.hpp"
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

}  // namespace heddle
