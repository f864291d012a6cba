#include "node-runtime/collectives/waiting_streams.hpp"

#include <utility>

namespace heddle::collectives {
namespace {

/// Does not keep the operation.
class WatchedByStream final : public WatchedOperation {
 public:
  explicit WatchedByStream(const std::shared_ptr<Operation>& operation)
      : operation_(operation), identity_(operation.get()) {}

  [[nodiscard]] const void* identity() const override { return identity_; }
  [[nodiscard]] bool is_over() override {
    const auto operation = operation_.lock();
    return operation == nullptr || operation->is_over();
  }
  [[nodiscard]] std::int64_t events() override {
    const auto operation = operation_.lock();
    return operation == nullptr ? 0 : operation->events();
  }
  void is_quiet() override {
    if (const auto operation = operation_.lock()) operation->tell_stuck();
  }

 private:
  std::weak_ptr<Operation> operation_;
  const void* identity_;
};

}  // namespace

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
  words_.emplace(number, std::move(word));
}

void WaitingStreams::go_on(std::int64_t number, const Error* failure) {
  const std::scoped_lock lock(mutex_);
  const auto [begin, end] = words_.equal_range(number);
  for (auto one = begin; one != end; ++one) {
    // Before it goes on: what is queued behind must not run on contents that are undefined.
    if (failure != nullptr) one->second->abandon(failure->what());
    one->second->raise();
  }
  words_.erase(begin, end);
}

void WaitingStreams::watch(const Stream& stream, const std::shared_ptr<Operation>& operation,
                           std::chrono::milliseconds patience, UserMessages& messages) {
  messages.stream_watch().add(stream, std::make_shared<WatchedByStream>(operation), patience);
}

}  // namespace heddle::collectives
