#include "node-runtime/collectives/waiting_streams.hpp"

#include <utility>

namespace heddle::collectives {

Stage WaitingStreams::gate(Stream& stream, p2p::LaneId lane) {
  const std::shared_ptr<Event> event = stream.device().create_event(EventTiming::off);
  stream.record(*event);
  const auto begin = [event, lane](Courier& courier, std::int64_t ticket) {
    courier.work({lane, {}, nullptr, event}, ticket);
    return false;
  };
  return {{"what its stream does before", begin}};
}

void WaitingStreams::stop(std::int64_t number, Stream& stream, p2p::LaneId lane,
                          UserMessages& messages) {
  auto word = messages.stream_words().take(lane);
  word->stop(stream);
  const std::scoped_lock lock(mutex_);
  streams_.emplace(number, Waiting{&stream, std::move(word)});
}

void WaitingStreams::go_on(std::int64_t number, const Error* failure) {
  Waiting waiting{};
  {
    const std::scoped_lock lock(mutex_);
    const auto found = streams_.find(number);
    if (found == streams_.end()) return;
    waiting = std::move(found->second);
    streams_.erase(found);
  }
  // Before it goes on: what is queued behind must not run on contents that are undefined.
  if (failure != nullptr) waiting.stream->abandon(failure->what());
  waiting.word->raise();
}

}  // namespace heddle::collectives
