#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unistd.h>

namespace heddle::testing {

/// What the two processes of a sharing test say to each other: plain values over a socket.
class PeerChannel {
 public:
  explicit PeerChannel(int fd) : fd_(fd) {}
  PeerChannel(const PeerChannel&) = delete;
  PeerChannel& operator=(const PeerChannel&) = delete;
  ~PeerChannel() { ::close(fd_); }

  template <class T>
  void send(const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* data = reinterpret_cast<const char*>(&value);
    transfer(sizeof value,
             [&](std::size_t done) { return ::write(fd_, data + done, sizeof value - done); });
  }

  template <class T>
  [[nodiscard]] T receive() const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    auto* data = reinterpret_cast<char*>(&value);
    transfer(sizeof value,
             [&](std::size_t done) { return ::read(fd_, data + done, sizeof value - done); });
    return value;
  }

  void send_text(const std::string& text) const {
    send(text.size());
    for (const char c : text) send(c);
  }
  [[nodiscard]] std::string receive_text() const {
    std::string text(receive<std::size_t>(), ' ');
    for (char& c : text) c = receive<char>();
    return text;
  }

 private:
  template <class Call>
  static void transfer(std::size_t bytes, const Call& call) {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t count = call(done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw std::runtime_error("the other process has gone");
      done += static_cast<std::size_t>(count);
    }
  }

  int fd_;
};

/// Size of the arrays that the two processes share.
inline constexpr std::size_t shared_count = 5000;

}  // namespace heddle::testing
