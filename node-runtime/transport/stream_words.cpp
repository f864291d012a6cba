#include "node-runtime/transport/stream_words.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace heddle {

/// Locks: mutex_ guards the lists of words and events; the device's own lock is taken under it.
/// stopped_mutex_ guards stopped_; a stream's own lock is taken under it, by Stream::abandon, which
/// waits for nobody.
class StreamWords::Pool {
 public:
  using Value = std::atomic<std::uint64_t>;

  explicit Pool(Device& device) : device_(device) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (void* block : blocks_) device_.free_host(block);
  }

  [[nodiscard]] Value& take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) grow();
    Value* const taken = free_.back();
    free_.pop_back();
    return *taken;
  }
  void give_back(Value& word) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(&word);
  }
  /// One that no stream has still to reach.
  [[nodiscard]] std::unique_ptr<Event> take_event() {
    const std::scoped_lock lock(mutex_);
    const auto is_over = [](const auto& event) { return event->query() != EventState::pending; };
    const auto found = std::ranges::find_if(events_, is_over);
    if (found == events_.end()) return device_.create_event(EventTiming::off);
    std::unique_ptr<Event> taken = std::move(*found);
    events_.erase(found);
    return taken;
  }
  void give_back(std::unique_ptr<Event> event) {
    const std::scoped_lock lock(mutex_);
    events_.push_back(std::move(event));
  }

  /// `stream` waits for `word`, until it goes on or is abandoned.
  void stop(Stream& stream, const Value& word) {
    const std::scoped_lock lock(stopped_mutex_);
    stopped_.emplace(&word, &stream);
  }
  void go_on(const Value& word) {
    const std::scoped_lock lock(stopped_mutex_);
    stopped_.erase(&word);
  }
  void abandon(const Value& word, const std::string& reason) {
    const std::scoped_lock lock(stopped_mutex_);
    const auto found = stopped_.find(&word);
    if (found == stopped_.end()) return;
    Stream* const stream = found->second;
    // Whoever sees that it has failed may destroy it, whatever else it waits for.
    std::erase_if(stopped_, [&](const auto& one) { return one.second == stream; });
    stream->abandon(reason);
  }

 private:
  /// Each word has a cache line of its own.
  void grow() {
    constexpr std::size_t words = 256;
    constexpr std::size_t line = 64;
    auto* const block = static_cast<std::byte*>(device_.allocate_host(words * line));
    blocks_.push_back(block);
    for (std::size_t i = 0; i < words; ++i) free_.push_back(new (block + i * line) Value(0));
  }

  Device& device_;
  std::mutex mutex_;
  std::vector<Value*> free_;
  std::vector<void*> blocks_;
  std::vector<std::unique_ptr<Event>> events_;  ///< of nobody; some may be pending
  std::mutex stopped_mutex_;
  std::map<const Value*, Stream*> stopped_;  ///< streams, by the words that they wait for
};

namespace {

template <class Pool>
class PooledWord final : public StreamWords::Word {
 public:
  explicit PooledWord(Pool& pool)
      // Relaxed: who raised it before gave it back under the pool's lock.
      : pool_(pool), word_(pool.take()), value_(word_.load(std::memory_order_relaxed) + 1) {}
  PooledWord(const PooledWord&) = delete;
  PooledWord& operator=(const PooledWord&) = delete;
  ~PooledWord() override {
    raise();
    pool_.give_back(word_);
  }

  void stop(Stream& stream) override {
    stream.await_word(word_, value_);
    pool_.stop(stream, word_);
  }
  void abandon(const std::string& reason) override { pool_.abandon(word_, reason); }
  void raise() override {
    pool_.go_on(word_);
    // Release pairs with the stream's reading.
    word_.store(value_, std::memory_order_release);
  }

 private:
  Pool& pool_;
  typename Pool::Value& word_;
  const std::uint64_t value_;
};

}  // namespace

StreamWords::StreamWords(std::span<Device* const> devices) {
  for (Device* device : devices) pools_.push_back(std::make_shared<Pool>(*device));
}

StreamWords::~StreamWords() = default;

std::shared_ptr<StreamWords::Word> StreamWords::take(p2p::LaneId lane) {
  return std::make_shared<PooledWord<Pool>>(*pools_[static_cast<std::size_t>(lane.value())]);
}

std::shared_ptr<Event> StreamWords::mark(p2p::LaneId lane, Stream& stream) {
  const std::shared_ptr<Pool> pool = pools_[static_cast<std::size_t>(lane.value())];
  std::unique_ptr<Event> event = pool->take_event();
  stream.record(*event);
  return {event.release(), [pool](Event* one) { pool->give_back(std::unique_ptr<Event>(one)); }};
}

}  // namespace heddle
