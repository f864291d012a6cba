#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/child_process.hpp"

namespace heddle {
namespace {

/// Where a descriptor leads; empty: it is closed.
std::string target_of_descriptor(int file) {
  std::string target(256, '\0');
  const std::string name = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = ::readlink(name.c_str(), target.data(), target.size());
  target.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return target;
}

/// What the descriptors 0 to 2 are in a child that has closed some and then called
/// open_standard_streams(), a bit each: it was closed and leads to /dev/null, or stays as it was.
int right_streams(unsigned closed) {
  const ChildProcess child("close its streams", [closed](const Conversation& parent) {
    std::vector<std::string> before;
    for (int file = 0; file < 3; ++file) before.push_back(target_of_descriptor(file));
    for (int file = 0; file < 3; ++file) {
      if ((closed >> static_cast<unsigned>(file) & 1U) != 0) ::close(file);
    }
    open_standard_streams();
    int right = 0;
    for (int file = 0; file < 3; ++file) {
      const bool was_closed = (closed >> static_cast<unsigned>(file) & 1U) != 0;
      const std::string& wanted = was_closed ? "/dev/null" : before[static_cast<std::size_t>(file)];
      if (target_of_descriptor(file) == wanted) right |= 1 << file;
    }
    static_cast<void>(parent.send_value(right));
  });
  int right = 0;
  EXPECT_TRUE(child.conversation().receive_value(right, std::chrono::seconds(30)));
  return right;
}

}  // namespace

TEST(StandardStreams, are_open_whichever_were_closed_and_others_are_left_alone) {
  for (unsigned closed = 0; closed < 8; ++closed) EXPECT_EQ(right_streams(closed), 7) << closed;
}

}  // namespace heddle
