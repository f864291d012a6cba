#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace heddle::detail {

void assertion_failed(const char* expression, const char* file, int line,
                      std::string_view message) {
  fmt::print(stderr, "heddle: internal error: {} is false at {}:{}{}{}\n", expression, file, line,
             message.empty() ? "" : ": ", message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace heddle::detail
