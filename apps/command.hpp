#pragma once

#include <exception>
#include <optional>

#include "apps/terminal.hpp"
#include "base/error.hpp"
#include "base/process_limits.hpp"

/// Shared by the subcommands.
namespace heddle {

/// Runs `work`; returns its exception as an Error that can be sent to all processes.
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
