#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"

namespace heddle {

/// How operations and programs' streams wait for each other: marks in streams, and words in host
/// memory that streams of a device wait for (Stream::await_word), one for each operation that a
/// stream waits for. A word only ever rises, so that one stream may still have to
/// look at it when the next one waits for a higher value.
///
/// Threads: any.
class StreamWords {
 public:
  explicit StreamWords(std::span<Device* const> devices);
  StreamWords(const StreamWords&) = delete;
  StreamWords& operator=(const StreamWords&) = delete;
  /// No stream waits for a word any more.
  ~StreamWords();

  /// What a stream waits for, and what lets it go on. Raised at the latest when it is destroyed.
  class Word {
   public:
    Word(const Word&) = delete;
    Word& operator=(const Word&) = delete;
    virtual ~Word() = default;

    /// The stream waits, behind what it has queued. Throws what Stream::await_word does.
    virtual void stop(Stream& stream) = 0;
    /// Fails the stream (Stream::abandon), if it waits for this word. Of several words that a
    /// stream waits for one does; its owner, who sees the failure, may destroy it then.
    virtual void abandon(const std::string& reason) = 0;
    /// It goes on. Writes before this are seen by what the stream has queued behind. The stream is
    /// not used any more.
    virtual void raise() = 0;

   protected:
    Word() = default;
  };
  /// Outlived by this object.
  [[nodiscard]] std::shared_ptr<Word> take(p2p::LaneId lane);

  /// An event that is recorded on `stream`, of the lane's device. It may be dropped before the
  /// stream has come there, as when an operation is cancelled: it is kept until then, and used
  /// again. It may outlive this object, but not the device; the stream must not.
  [[nodiscard]] std::shared_ptr<Event> mark(p2p::LaneId lane, Stream& stream);

 private:
  class Pool;
  std::vector<std::shared_ptr<Pool>> pools_;  ///< by lane
};

}  // namespace heddle
