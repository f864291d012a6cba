#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/printable.hpp"

namespace heddle {

/// Kind of failure; decides the exit status of the binary (DESIGN section 5).
enum class ErrorCode : std::uint8_t {
  internal,       ///< a broken invariant or an operating-system call that should not fail: exit 1
  usage,          ///< bad command line, configuration or input: exit 2
  numerical,      ///< the matrix does not allow the factorization: exit 3
  communication,  ///< a node or its communication failed: exit 4
  interrupted,    ///< Ctrl-C or a terminate signal: exit 130
};

/// Exit status of the process for `code`.
[[nodiscard]] constexpr int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::internal:
      return 1;
    case ErrorCode::usage:
      return 2;
    case ErrorCode::numerical:
      return 3;
    case ErrorCode::communication:
      return 4;
    case ErrorCode::interrupted:
      return 130;
  }
  return 1;
}

/// The only exception type of the library. `what()` says what happened, where, with which value,
/// and what to do. Control characters of quoted inputs are escaped (printable).
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message)
      : std::runtime_error(printable(message, LineBreaks::kept)), code_(code) {}

  [[nodiscard]] ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace heddle
