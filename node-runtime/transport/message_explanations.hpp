#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle {

/// Explains the messages that a node has received: for each kind (size, path), how the path of the
/// first one was chosen, and how long all of them took. Threads: any.
class MessageExplanations {
 public:
  /// Kinds that are explained; messages of further kinds are only counted.
  static constexpr std::size_t kinds_max = 32;

  void add(const p2p::MessageReport& report);
  /// One text for each kind, by total bytes, largest first.
  [[nodiscard]] std::vector<std::string> texts() const;

 private:
  struct Kind {
    p2p::Path path = p2p::Path::eager;
    std::int64_t bytes = 0;
    std::string first;
    std::int64_t messages = 0;
    double us = 0;  ///< of all
  };

  mutable std::mutex mutex_;
  std::vector<Kind> kinds_;
  std::int64_t others_ = 0;
};

}  // namespace heddle
