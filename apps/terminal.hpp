#pragma once

#include <string>

/// What a command says: to standard output what it was asked for, to standard error what went
/// wrong.
namespace heddle {

/// To standard output, at once; what it quotes of inputs is made printable. The first failure is
/// printed on standard error, and nothing more is written. A pipe without a reader is no failure.
void print(const std::string& message);

/// Prints an error as all of heddle's are printed. Keeps quiet about what went wrong in writing it.
void print_error(const std::string& message);

/// The exit status of a process that would end with `status`: 1 instead of 0 when something of
/// standard output was lost.
[[nodiscard]] int status_with_output(int status);

}  // namespace heddle
