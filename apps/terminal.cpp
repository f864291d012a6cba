#include "apps/terminal.hpp"

#include <cerrno>
#include <cstdio>
#include <fmt/core.h>
#include <system_error>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace heddle {
namespace {

void complain(int error) {
  print_error(fmt::format("standard output could not be written: {}",
                          std::generic_category().message(error)));
}

}  // namespace

void print(const std::string& message) {
  if (std::ferror(stdout) != 0) return;
  const std::string text = printable(message, LineBreaks::kept);
  const bool is_taken = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (is_taken && std::fflush(stdout) == 0) return;
  if (errno != EPIPE) return complain(errno);
  std::clearerr(stdout);  // a closed pipe does not affect the results
}

void print_error(const std::string& message) {
  const std::string text = fmt::format("heddle: {}\n", printable(message, LineBreaks::kept));
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

int status_with_output(int status) {
  const bool was_whole = std::ferror(stdout) == 0;
  // Some file systems report a full disk only at close.
  const int error = std::fclose(stdout) == 0 ? 0 : errno;
  if (was_whole && (error == 0 || error == EPIPE)) return status;
  if (was_whole) complain(error);
  return status == 0 ? exit_status(ErrorCode::internal) : status;
}

}  // namespace heddle
