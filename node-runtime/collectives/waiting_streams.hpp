#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/transport/stream_words.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle::collectives {

/// Programs' streams that wait for operations of a group.
///
/// An operation on a stream begins when what the stream had queued before has ended (gate()), and
/// the stream goes on when it is over (go_on()): by a word in host memory, so that no thread waits.
///
/// Lifetime: a stream stays until it has gone on, as Stream's destruction asks for.
///
/// Locks: mutex_ guards the map; nothing else is called while it is held. Threads: any.
class WaitingStreams {
 public:
  /// Records where the stream is. The stage ends when the stream has come there.
  [[nodiscard]] static Stage gate(Stream& stream, p2p::LaneId lane);
  /// The stream waits for operation `number`. Throws what Stream::await_word does.
  void stop(std::int64_t number, Stream& stream, p2p::LaneId lane, UserMessages& messages);
  /// If one waits for `number`: it goes on, and fails if the operation has.
  void go_on(std::int64_t number, const Error* failure);

 private:
  struct Waiting {
    Stream* stream;
    std::shared_ptr<StreamWords::Word> word;
  };

  std::mutex mutex_;
  std::map<std::int64_t, Waiting> streams_;  ///< by operation
};

}  // namespace heddle::collectives
