#include "apps/tuning/device_bench.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <fmt/core.h>

#include "base/error.hpp"
#include "base/median.hpp"
#include "kernels/kernels.hpp"

namespace heddle::tuning {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t runs_min = 3;
constexpr std::int64_t runs_max = 40;  ///< queued at once: fewer than a stream holds

/// Operands of products in turns, more than a GPU's cache holds where tiles are small.
constexpr std::int64_t operand_bytes = std::int64_t{256} << 20;
constexpr std::int64_t inputs_max = 16;
/// Outputs: a multiple of every number of streams, so that none waits for another one's.
constexpr std::int64_t outputs = 12;

constexpr double batch_seconds = 0.01;  ///< long beside waiting for it, short beside the run
constexpr std::int64_t batch_max =
    28;  ///< two of them are fewer than a GPU's stream keeps results of

std::int64_t inputs(std::int64_t tile) {
  return std::clamp<std::int64_t>(operand_bytes / (8 * tile * tile), 2, inputs_max);
}

double seconds_between(const Event& begin, const Event& end) {
  begin.synchronize();
  end.synchronize();
  return static_cast<double>(end.completed_ns() - begin.completed_ns()) * 1e-9;
}

/// Products that were finished by a moment.
struct Finished {
  std::int64_t ns = 0;
  std::int64_t count = 0;
};

/// Seconds of each, from the first moment in the second half of the time to the last one.
double late_seconds_each(std::vector<Finished>& finished) {
  std::sort(finished.begin(), finished.end(),
            [](const Finished& a, const Finished& b) { return a.ns < b.ns; });
  const std::int64_t middle = (finished.front().ns + finished.back().ns) / 2;
  const auto late = std::find_if(finished.begin(), finished.end(),
                                 [middle](const Finished& f) { return f.ns >= middle; });
  const auto begin = late == finished.end() - 1 ? finished.begin() : late;
  std::int64_t count = 0;
  for (auto f = begin + 1; f < finished.end(); ++f) count += f->count;
  const std::int64_t ns = std::max<std::int64_t>(1, finished.back().ns - begin->ns);
  return static_cast<double>(ns) * 1e-9 / static_cast<double>(count);
}

}  // namespace

DeviceBench::DeviceBench(Device& device, const NormalValues& normal)
    : device_(device),
      normal_(device, normal.values().size_bytes()),
      normal_bytes_(normal.values().size_bytes()) {
  std::copy(normal.values().begin(), normal.values().end(), normal_.doubles());
  for (std::int32_t s = 0; s < streams_max; ++s) streams_.push_back(device_.create_stream());
  for (std::int64_t r = 0; r < runs_max; ++r) {
    events_.push_back({device_.create_event(), device_.create_event()});
  }
}

void DeviceBench::fill_normal(const DeviceTile& tile) {
  auto* to = reinterpret_cast<std::byte*>(tile.view().data);
  for (std::size_t done = 0; done < tile.bytes(); done += normal_bytes_) {
    streams_[0]->copy({to + done, &device_}, {normal_.bytes(), nullptr},
                      std::min(normal_bytes_, tile.bytes() - done));
  }
  streams_[0]->synchronize();
}

void DeviceBench::fill_definite(const DeviceTile& tile) {
  fill_normal(tile);
  const TileView view = tile.view();
  const auto count = static_cast<std::size_t>(view.columns);
  const HostMemory diagonal(device_, count * sizeof(double));
  std::fill_n(diagonal.doubles(), count, definite_diagonal(view.columns));
  const auto leading = static_cast<std::size_t>(view.leading + 1) * sizeof(double);
  streams_[0]->copy_strided({view.data, &device_}, {diagonal.bytes(), nullptr},
                            {sizeof(double), count, leading, sizeof(double)});
  streams_[0]->synchronize();
}

void DeviceBench::copy_within(const DeviceTile& to, const DeviceTile& from) {
  streams_[0]->copy({to.view().data, &device_}, {from.view().data, &device_}, to.bytes());
}

void DeviceBench::launch(std::size_t stream, const DeviceCase& once) {
  streams_[stream]->launch(*once.kernel, once.tiles, once.parameters, &infos_[stream]);
}

void DeviceBench::expect_success(const DeviceCase& once) const {
  if (infos_[0] == 0) return;
  throw Error(
      ErrorCode::internal,
      fmt::format("{}: kernel {} of a good tile of {} x {} gives info {}", device_.info().name,
                  once.kernel->name, once.tiles[0].rows, once.tiles[0].columns, infos_[0]));
}

void DeviceBench::run(const DeviceCase& once) {
  for (const auto& [to, from] : once.restored) copy_within(*to, *from);
  launch(0, once);
  streams_[0]->synchronize();
  expect_success(once);
}

double DeviceBench::seconds_of(const DeviceCase& timed, double seconds) {
  run(timed);  // scratch memory grows, libraries load their kernels
  const Clock::time_point begin = Clock::now();
  run(timed);
  const double one = std::chrono::duration<double>(Clock::now() - begin).count();
  const auto wanted = static_cast<std::int64_t>(seconds / one);
  const auto runs = static_cast<std::size_t>(std::clamp(wanted, runs_min, runs_max));
  for (std::size_t r = 0; r < runs; ++r) {
    for (const auto& [to, from] : timed.restored) copy_within(*to, *from);
    streams_[0]->record(*events_[r].begin);
    launch(0, timed);
    streams_[0]->record(*events_[r].end);
  }
  std::vector<double> times;
  for (std::size_t r = 0; r < runs; ++r) {
    // By the clocks of some devices the shortest kernels take no time.
    times.push_back(std::max(1e-7, seconds_between(*events_[r].begin, *events_[r].end)));
  }
  streams_[0]->synchronize();
  expect_success(timed);
  return median(std::move(times));
}

/// Tiles of products, used in turns.
struct DeviceBench::Operands {
  Operands(DeviceBench& bench, std::int64_t tile) {
    for (std::int64_t i = 0; i < inputs(tile) + outputs; ++i) {
      tiles.emplace_back(bench.device_, tile, tile);
      bench.fill_normal(tiles.back());
    }
  }
  [[nodiscard]] DeviceCase product(std::int64_t call) const {
    const auto count = static_cast<std::int64_t>(tiles.size()) - outputs;
    const auto view = [this](std::int64_t i) { return tiles[static_cast<std::size_t>(i)].view(); };
    return {.kernel = &kernel::gsmm,
            .parameters = KernelParameters(kernel::UpdateParameters{0}),
            .tiles = {view(count + call % outputs), view(call % count), view((call + 1) % count)},
            .restored = {}};
  }

  std::vector<DeviceTile> tiles;
};

std::uint64_t DeviceBench::product_bytes(std::int64_t tile) {
  return static_cast<std::uint64_t>((inputs(tile) + outputs) * 8 * tile * tile);
}

double DeviceBench::product_seconds(std::int64_t tile, std::int32_t streams, double seconds) {
  const Operands operands(*this, tile);
  std::vector<std::int64_t> calls(static_cast<std::size_t>(streams));  // of each stream
  const auto queue = [&](std::int32_t stream, std::int64_t count) {
    auto& own = calls[static_cast<std::size_t>(stream)];
    for (std::int64_t i = 0; i < count; ++i, ++own) {
      launch(static_cast<std::size_t>(stream), operands.product(own * streams + stream));
    }
  };
  for (std::int32_t s = 0; s < streams; ++s) {
    queue(s, 1);
    streams_[static_cast<std::size_t>(s)]->synchronize();
  }
  const Clock::time_point first = Clock::now();
  queue(0, 1);
  streams_[0]->synchronize();
  const double one = std::chrono::duration<double>(Clock::now() - first).count();
  const std::int64_t batch =
      std::clamp(static_cast<std::int64_t>(batch_seconds / one), std::int64_t{1}, batch_max);

  // Each stream always has a batch that runs and one behind it.
  std::vector<std::deque<std::size_t>> pending(static_cast<std::size_t>(streams));
  std::vector<Finished> finished;
  std::size_t next_event = 0;
  const auto add_batch = [&](std::int32_t s) {
    queue(s, batch);
    Event& event = *events_[next_event % events_.size()].end;
    streams_[static_cast<std::size_t>(s)]->record(event);
    pending[static_cast<std::size_t>(s)].push_back(next_event++ % events_.size());
  };
  const auto take_batch = [&](std::int32_t s) {
    auto& own = pending[static_cast<std::size_t>(s)];
    const Event& event = *events_[own.front()].end;
    event.synchronize();
    own.pop_front();
    finished.push_back({event.completed_ns(), batch});
  };
  const Clock::time_point begin = Clock::now();
  for (int depth = 0; depth < 2; ++depth) {
    for (std::int32_t s = 0; s < streams; ++s) add_batch(s);
  }
  while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    for (std::int32_t s = 0; s < streams; ++s) {
      take_batch(s);
      add_batch(s);
    }
  }
  for (int depth = 0; depth < 2; ++depth) {
    for (std::int32_t s = 0; s < streams; ++s) take_batch(s);
  }
  for (std::int32_t s = 0; s < streams; ++s) streams_[static_cast<std::size_t>(s)]->synchronize();
  return late_seconds_each(finished);
}

}  // namespace heddle::tuning
