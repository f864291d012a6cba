#pragma once

#include <exception>
#include <optional>

#include "apps/terminal.hpp"
#include "base/error.hpp"

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

}  // namespace heddle
