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

/// One end of a socket between a process and its child; keeps message boundaries. Thread: one at a
/// time.
class Conversation {
 public:
  /// No timeout: the parent's death ends a child in any case.
  static constexpr std::chrono::hours always{1};

  /// Owns `socket`.
  explicit Conversation(int socket) : socket_(socket) {}
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  ~Conversation();

  /// False when the other end is closed.
  [[nodiscard]] bool send(std::span<const std::byte> message) const;
  /// Receives one message into `to`, which must be large enough; returns its bytes, or nothing when
  /// the other end is closed or `limit` has passed.
  [[nodiscard]] std::optional<std::size_t> receive(std::span<std::byte> to,
                                                   std::chrono::milliseconds limit) const;

  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool send_value(const T& value) const {
    return send(std::as_bytes(std::span(&value, 1)));
  }
  /// As above; also false for a message of another size.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] bool receive_value(T& value, std::chrono::milliseconds limit) const {
    return receive(std::as_writable_bytes(std::span(&value, 1)), limit) == sizeof(T);
  }

 private:
  int socket_;
};

/// A forked copy of this process, connected to it by two Conversation ends. Ends when `life`
/// returns or throws, when this process dies, and with this object. Fork while this process has one
/// thread if the child is to start threads or allocate memory.
class ChildProcess {
 public:
  /// The child calls `life` with its end, then exits. Throws Error(usage) with "a child to " and
  /// `purpose` if fork fails.
  ChildProcess(std::string_view purpose, const std::function<void(const Conversation&)>& life);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Kills the child and collects it.
  ~ChildProcess();

  [[nodiscard]] const Conversation& conversation() const { return *conversation_; }
  [[nodiscard]] pid_t id() const { return process_; }

 private:
  pid_t process_ = -1;
  std::optional<Conversation> conversation_;
};

}  // namespace heddle
