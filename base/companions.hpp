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

/// Forked copies of this process that work beside it as the nodes of a host do; each receives
/// commands and answers. Create them while this process has one thread. Thread: one at a time.
class Companions {
 public:
  /// Longest time to wait for an answer.
  static constexpr std::chrono::seconds patience{60};

  /// `deed`: what each copy does, for error texts: "times kernels".
  explicit Companions(std::string deed) : deed_(std::move(deed)) {}

  /// Forks a copy that runs `life` (ChildProcess). Throws Error(internal) if the system refuses.
  void add(const std::function<void(const Conversation&)>& life);
  [[nodiscard]] std::size_t count() const { return processes_.size(); }
  [[nodiscard]] pid_t process(std::size_t i) const { return processes_[i]->id(); }

  /// A copy that has died is noticed by hear().
  template <class T>
  void tell(std::size_t i, const T& word) const {
    static_cast<void>(processes_[i]->conversation().send_value(word));
  }
  template <class T>
  void tell_all(const T& word) const {
    for (std::size_t i = 0; i < count(); ++i) tell(i, word);
  }
  /// Receives the next answer into `to`. Throws Error(internal) when the copy has died, timed out,
  /// or answered with another size.
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
