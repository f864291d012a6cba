#include "node-runtime/collectives/waiting_streams.hpp"

#include <utility>

namespace heddle::collectives {

Stage WaitingStreams::gate(Stream& stream, p2p::LaneId lane, UserMessages& messages) {
  const std::shared_ptr<Event> event = messages.stream_words().mark(lane, stream);
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
  const std::scoped_lock lock(mutex_);
  const auto [begin, end] = streams_.equal_range(number);
  for (auto one = begin; one != end; ++one) {
    // Before it goes on: what is queued behind must not run on contents that are undefined.
    if (failure != nullptr) one->second.stream->abandon(failure->what());
    one->second.word->raise();
  }
  streams_.erase(begin, end);
}

}  // namespace heddle::collectives
