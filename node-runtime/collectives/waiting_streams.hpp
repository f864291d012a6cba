#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/execution/operation.hpp"
#include "node-runtime/transport/stream_words.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle::collectives {

/// Programs' streams that wait for operations of a group, or for rounds of an exchange; any number
/// of them for each.
///
/// An operation on a stream begins when what the stream had queued before has ended (gate()), and
/// the stream goes on when it is over (go_on()): by a word in host memory, so that no thread waits.
///
/// Lifetime: a stream stays until it has gone on, as Stream's destruction asks for, or until it is
/// seen to have failed.
///
/// Locks: mutex_ guards the map, and is held while streams go on, which waits for nobody. Threads:
/// any.
class WaitingStreams {
 public:
  /// Records where the stream is. The stage ends when the stream has come there.
  [[nodiscard]] static Stage gate(Stream& stream, p2p::LaneId lane, UserMessages& messages);
  /// The stream waits for operation `number`. Throws what Stream::await_word does.
  void stop(std::int64_t number, Stream& stream, p2p::LaneId lane, UserMessages& messages);
  /// Those that wait for `number` go on, and fail if the operation has. When this returns they
  /// have, whichever thread has let them.
  void go_on(std::int64_t number, const Error* failure);
  /// From now on the thread that moves messages notices if nothing happens in `operation`, which
  /// the stream waits for, or which waits for the stream.
  static void watch(const Stream& stream, const std::shared_ptr<Operation>& operation,
                    std::chrono::milliseconds patience, UserMessages& messages);

 private:
  std::mutex mutex_;
  std::multimap<std::int64_t, std::shared_ptr<StreamWords::Word>> words_;  ///< by operation
};

}  // namespace heddle::collectives
