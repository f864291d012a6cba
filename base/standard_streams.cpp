#include "base/standard_streams.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace heddle {

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free descriptor, which is `stream`: those below are open.
    if (::open("/dev/null", O_RDWR) == stream) continue;
    constexpr std::string_view text =
        "heddle: one of the descriptors 0 to 2 is closed, and /dev/null cannot be opened in its "
        "place\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(1);
  }
}

}  // namespace heddle
