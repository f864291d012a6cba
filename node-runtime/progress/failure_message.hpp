#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace heddle {

class Communicator;

/// What a failing node tells the others before it ends.
///
/// Invariant: text is a string that ends within the message.
class FailureMessage {
 public:
  static constexpr std::size_t bytes = 1024;
  static constexpr int tag = 2;

  FailureMessage() = default;
  /// `elsewhere`: the text speaks of another node's failure already. A longer text is cut off.
  FailureMessage(std::string_view text, bool elsewhere);

  [[nodiscard]] bool is_of_elsewhere() const { return content_[0] == relayed; }
  [[nodiscard]] std::string text() const;
  /// What travels, to be received into.
  [[nodiscard]] char* data() { return content_.data(); }
  [[nodiscard]] const char* data() const { return content_.data(); }

 private:
  static constexpr char own = 'o';
  static constexpr char relayed = 'r';
  std::array<char, bytes> content_{};  ///< whose failure it is, then the text
};

/// Sends it to all other nodes; returns when they have it or after a second: a node that is gone
/// does not answer. Thread: the progress thread.
void send_to_all(const Communicator& communicator, const FailureMessage& message);

}  // namespace heddle
