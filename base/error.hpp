#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

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
[[nodiscard]] int exit_status(ErrorCode code);

/// The only exception type of the library. `what()` says what happened, where, with which value,
/// and what to do. Control characters of quoted inputs are escaped (printable).
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);

  [[nodiscard]] ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace heddle
