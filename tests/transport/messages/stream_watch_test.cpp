#include "node-runtime/transport/stream_watch.hpp"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>

#include "node-runtime/device/emulated/emulated_device.hpp"

namespace heddle {
namespace {

using std::chrono::milliseconds;

struct Fake {
  std::int64_t events = 0;
  bool is_over = false;
  int told = 0;
};

/// Stands for a Fake, which outlives it.
class Watched final : public WatchedOperation {
 public:
  explicit Watched(Fake& fake) : fake_(fake) {}
  [[nodiscard]] const void* identity() const override { return &fake_; }
  [[nodiscard]] bool is_over() override { return fake_.is_over; }
  [[nodiscard]] std::int64_t events() override { return fake_.events; }
  void is_quiet() override { ++fake_.told; }

 private:
  Fake& fake_;
};

class StreamWatchTest : public testing::Test {
 protected:
  void add(const Stream& stream, Fake& fake) {
    watch_.add(stream, std::make_shared<Watched>(fake), milliseconds(1000));
  }
  /// Looks as many times, 100 ms apart.
  void look(int times) {
    for (int k = 0; k < times; ++k) watch_.look_at_all(now_ += StreamWatch::looks_every);
  }

  EmulatedDevice device_{0, {}};
  std::unique_ptr<Stream> first_ = device_.create_stream();
  std::unique_ptr<Stream> second_ = device_.create_stream();
  StreamWatch watch_;
  StreamWatch::Clock::time_point now_ = StreamWatch::Clock::now();
};

}  // namespace

TEST_F(StreamWatchTest, tells_an_operation_in_which_nothing_happens_again_and_again) {
  Fake stuck;
  Fake busy;
  add(*first_, stuck);
  add(*second_, busy);
  for (int k = 0; k < 11; ++k) {
    look(1);
    ++busy.events;
  }
  EXPECT_EQ(stuck.told, 0) << "a second has not gone by";
  look(3);
  EXPECT_EQ(stuck.told, 3);
  EXPECT_EQ(busy.told, 0);
  stuck.is_over = true;
  look(1);
  EXPECT_EQ(stuck.told, 3);
}

TEST_F(StreamWatchTest, times_only_the_first_operation_of_a_stream) {
  Fake before;
  Fake behind;
  add(*first_, before);
  add(*first_, behind);
  for (int k = 0; k < 30; ++k) {
    look(1);
    ++before.events;
  }
  EXPECT_EQ(behind.told, 0) << "it waits for the one before";
  before.is_over = true;
  look(12);
  EXPECT_EQ(behind.told, 1);
}

/// A round that begins behind one stream, and that another one waits for.
TEST_F(StreamWatchTest, times_no_operation_that_is_behind_others_on_one_of_its_streams) {
  Fake before;
  Fake round;
  add(*first_, before);
  add(*first_, round);
  add(*second_, round);
  for (int k = 0; k < 30; ++k) {
    look(1);
    ++before.events;
  }
  EXPECT_EQ(round.told, 0);
  before.is_over = true;
  look(13);
  EXPECT_EQ(round.told, 2) << "once with each look, though two streams have it";
}

}  // namespace heddle
