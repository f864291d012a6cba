#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <type_traits>

namespace heddle {

/// One end of a socket between a process and its child: messages of bytes, each whole and in order.
/// Thread: one at a time.
class Conversation {
 public:
  /// How long a child listens: its parent's death ends it in any case.
  static constexpr std::chrono::hours always{1};

  /// Takes the socket.
  explicit Conversation(int socket) : socket_(socket) {}
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  ~Conversation();

  /// False when the other end has gone.
  [[nodiscard]] bool send(std::span<const std::byte> message) const;
  /// The next message's bytes, which `to` has room for; nothing when the other end has gone or was
  /// silent for so long.
  [[nodiscard]] std::optional<std::size_t> receive(std::span<std::byte> to,
                                                   std::chrono::milliseconds limit) const;

  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool send_value(const T& value) const {
    return send(std::as_bytes(std::span(&value, 1)));
  }
  /// False likewise, and for a message of another size.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool receive_value(T& value, std::chrono::milliseconds limit) const {
    return receive(std::as_writable_bytes(std::span(&value, 1)), limit) == sizeof(T);
  }

 private:
  int socket_;
};

/// A forked copy of this process, which the two ends of a conversation connect. Ends when its life
/// returns or throws, when this process dies, and with this object. To be made while this process
/// has one thread, if the child is to start others or to allocate memory.
class ChildProcess {
 public:
  /// The child calls `life` with its end, and ends. Throws Error(usage), which has "a child to "
  /// and `purpose`, if the system refuses.
  ChildProcess(std::string_view purpose, const std::function<void(const Conversation&)>& life);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Ends the child at once and collects it.
  ~ChildProcess();

  [[nodiscard]] const Conversation& conversation() const { return *conversation_; }
  [[nodiscard]] pid_t id() const { return process_; }

 private:
  pid_t process_ = -1;
  std::optional<Conversation> conversation_;
};

}  // namespace heddle
