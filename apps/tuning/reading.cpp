#include "apps/tuning/reading.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <span>
#include <sys/types.h>
#include <thread>
#include <unistd.h>

#include "apps/tuning/operands.hpp"
#include "base/assert.hpp"
#include "base/companions.hpp"
#include "base/median.hpp"
#include "base/process_memory.hpp"
#include "kernels/kernels.hpp"

namespace heddle::tuning {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t order = 256;  ///< of tiles
constexpr std::int64_t tile_elements = order * order;
constexpr std::int64_t tiles_each = 4;   ///< that a worker updates by turns
constexpr std::int64_t panel_tiles = 8;  ///< that all of a process's workers read
/// Blocks that readers read into by turns: more than their cores' caches hold, as a job's tiles
/// come into memory that was not used before. Of each reader, and of all together.
constexpr std::int64_t blocks_most = 128;
constexpr std::int64_t blocks_least = 16;
constexpr std::int64_t blocks_of_all = 2048;
constexpr std::int64_t long_elements = tile_elements;
constexpr std::int64_t short_elements = long_elements / 16;
constexpr int reading_rounds = 9;
constexpr double round_seconds = 0.02;

/// Where a node's workers write.
struct Written {
  pid_t process = 0;
  std::uint64_t address = 0;
  std::int64_t tiles = 0;
};

/// Mean seconds of a short and of a long one; 0: a process cannot be read.
struct ReadTimes {
  double short_one = 0;
  double long_one = 0;
};

class ReadingNode {
 public:
  /// One of `nodes` nodes.
  ReadingNode(const Workers& workers, std::size_t nodes, const NormalValues& normal)
      : workers_(workers),
        block_count_(std::clamp(blocks_of_all / static_cast<std::int64_t>(nodes), blocks_least,
                                blocks_most)),
        written_((workers.count * tiles_each) * tile_elements, normal),
        panel_(panel_tiles * tile_elements, normal),
        blocks_(block_count_ * tile_elements, normal) {}

  [[nodiscard]] Written written() const {
    return {::getpid(), std::bit_cast<std::uint64_t>(written_.data()), workers_.count * tiles_each};
  }

  /// Reads for `seconds`, and once of each at least.
  [[nodiscard]] ReadTimes round(const Written& other, double seconds) {
    is_over_.store(false, std::memory_order_relaxed);
    const BesideWorkers beside(workers_);
    std::latch at_work(workers_.count + 1);
    std::vector<std::jthread> threads;
    for (std::int32_t w = 0; w < workers_.count; ++w) {
      threads.emplace_back([&, w] {
        workers_.pin(w);
        update(w, 0);
        at_work.arrive_and_wait();
        for (std::int64_t run = 1; !is_over_.load(std::memory_order_relaxed); ++run) update(w, run);
      });
    }
    at_work.arrive_and_wait();
    const ReadTimes times = read(other, seconds);
    is_over_.store(true, std::memory_order_relaxed);
    return times;
  }

 private:
  void update(std::int32_t worker, std::int64_t run) const {
    const auto tile = [](const NormalElements& of, std::int64_t i) {
      return TileView{of.data() + i * tile_elements, order, order, order};
    };
    const std::array views{tile(written_, worker * tiles_each + run % tiles_each),
                           tile(panel_, (worker + run) % panel_tiles),
                           tile(panel_, (worker + 3 * run) % panel_tiles)};
    const std::int64_t info = kernel::gsmm.host(
        {std::span<const TileView>(views), KernelParameters{kernel::UpdateParameters{0}}});
    HEDDLE_CHECK(info == 0, "an update gives info {}", info);
  }

  [[nodiscard]] ReadTimes read(const Written& other, double seconds) {
    ReadTimes sums;
    const Clock::time_point begin = Clock::now();
    int runs = 0;
    do {
      const std::int64_t tile = next_++;
      const double of_short = read(other, tile, short_elements);
      const double of_long = read(other, tile + other.tiles / 2, long_elements);
      if (of_short <= 0 || of_long <= 0) return {};
      sums.short_one += of_short;
      sums.long_one += of_long;
      ++runs;
    } while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds);
    return {sums.short_one / runs, sums.long_one / runs};
  }

  /// Seconds; 0: it cannot.
  [[nodiscard]] double read(const Written& other, std::int64_t tile, std::int64_t elements) const {
    const std::span<double> block(blocks_.data() + tile % block_count_ * tile_elements,
                                  static_cast<std::size_t>(elements));
    const std::uint64_t from =
        other.address +
        static_cast<std::uint64_t>(tile % other.tiles * tile_elements) * sizeof(double);
    const Clock::time_point begin = Clock::now();
    const ssize_t count = read_process(other.process, from, std::as_writable_bytes(block));
    const Clock::time_point end = Clock::now();
    if (count != static_cast<ssize_t>(block.size_bytes())) return 0;
    return std::max(1e-9, std::chrono::duration<double>(end - begin).count());
  }

  const Workers& workers_;
  std::int64_t block_count_ = 0;
  NormalElements written_;
  NormalElements panel_;
  NormalElements blocks_;
  std::int64_t next_ = 0;
  std::atomic<bool> is_over_{false};
};

}  // namespace

std::optional<MessageMeasurement::Reading> reading_beside_work(
    const std::vector<Workers>& processes) {
  HEDDLE_CHECK(processes.size() > 1, "{} process has nobody to read", processes.size());
  const NormalValues normal;
  Companions others("reads tiles");
  for (std::size_t p = 1; p < processes.size(); ++p) {
    others.add([&, p](const Conversation& parent) {
      ReadingNode node(processes[p], processes.size(), normal);
      Written other;
      if (!parent.send_value(node.written())) return;
      if (!parent.receive_value(other, Conversation::always)) return;
      for (double seconds = 0; parent.receive_value(seconds, Conversation::always);) {
        if (!parent.send_value(node.round(other, seconds))) return;
      }
    });
  }
  ReadingNode node(processes[0], processes.size(), normal);
  std::vector<Written> written{node.written()};
  for (std::size_t i = 0; i < others.count(); ++i) written.push_back(others.hear<Written>(i));
  // Each reads the next one.
  const auto next_of = [&](std::size_t p) { return written[(p + 1) % written.size()]; };
  for (std::size_t i = 0; i < others.count(); ++i) others.tell(i, next_of(i + 1));

  std::vector<double> short_ones;
  std::vector<double> long_ones;
  for (int i = 0; i <= reading_rounds; ++i) {
    others.tell_all(round_seconds);
    std::vector<ReadTimes> times{node.round(next_of(0), round_seconds)};
    for (std::size_t o = 0; o < others.count(); ++o) times.push_back(others.hear<ReadTimes>(o));
    if (std::ranges::any_of(times, [](const ReadTimes& one) { return one.long_one <= 0; })) {
      return std::nullopt;
    }
    if (i == 0) continue;  // new memory, cold caches
    ReadTimes mean;
    const auto count = static_cast<double>(times.size());
    for (const ReadTimes& one : times) {
      mean.short_one += one.short_one / count;
      mean.long_one += one.long_one / count;
    }
    short_ones.push_back(mean.short_one);
    long_ones.push_back(mean.long_one);
  }
  const double of_short = median(std::move(short_ones));
  const double of_long = median(std::move(long_ones));
  constexpr auto bytes_of = [](std::int64_t elements) {
    return static_cast<double>(elements) * sizeof(double);
  };
  // Where short ones take no less than long ones, what long ones take.
  const double rate = of_long > of_short
                          ? bytes_of(long_elements - short_elements) / (of_long - of_short)
                          : bytes_of(long_elements) / of_long;
  return MessageMeasurement::Reading{
      std::max(0.0, of_short - bytes_of(short_elements) / rate) * 1e6, rate * 1e-9};
}

}  // namespace heddle::tuning
