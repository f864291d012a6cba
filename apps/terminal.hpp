#pragma once

#include <string>

/// Output of commands: results to standard output, errors to standard error.
namespace heddle {

/// Prints to standard output and flushes; control characters are escaped. The first failure is
/// reported on standard error and stops all output. A closed pipe is not a failure.
void print(const std::string& message);

/// Prints an error in heddle's format. Ignores failures to write it.
void print_error(const std::string& message);

/// Exit status: `status`, or 1 instead of 0 if standard output is incomplete.
[[nodiscard]] int status_with_output(int status);

}  // namespace heddle
