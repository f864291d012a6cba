#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <sys/types.h>
#include <type_traits>
#include <vector>

#include "base/child_process.hpp"

namespace heddle {

/// Copies of this process that do beside it what it does itself, as the nodes of a host: each
/// listens for words, and answers them. To be made while this process has one thread.
/// Thread: one at a time.
class Companions {
 public:
  /// How long one may be silent beside its work.
  static constexpr std::chrono::seconds patience{60};

  /// What each does, for errors: "times kernels".
  explicit Companions(std::string deed) : deed_(std::move(deed)) {}

  /// One more, with this life (ChildProcess). Throws Error(internal) if the system refuses.
  void add(const std::function<void(const Conversation&)>& life);
  [[nodiscard]] std::size_t count() const { return processes_.size(); }
  [[nodiscard]] pid_t process(std::size_t i) const { return processes_[i]->id(); }

  /// That one has gone shows when it does not answer.
  template <class T>
  void tell(std::size_t i, const T& word) const {
    static_cast<void>(processes_[i]->conversation().send_value(word));
  }
  template <class T>
  void tell_all(const T& word) const {
    for (std::size_t i = 0; i < count(); ++i) tell(i, word);
  }
  /// Its next answer, which fills `to`. Throws Error(internal) when it has gone, was silent for too
  /// long, or answers otherwise.
  void hear(std::size_t i, std::span<std::byte> to) const;
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T hear(std::size_t i) const {
    T answer;
    hear(i, std::as_writable_bytes(std::span(&answer, 1)));
    return answer;
  }

 private:
  std::string deed_;
  std::vector<std::unique_ptr<ChildProcess>> processes_;
};

}  // namespace heddle
