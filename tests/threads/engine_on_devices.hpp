#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "node-runtime/device/devices.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/threads/copy_thread.hpp"
#include "node-runtime/threads/cpu_worker.hpp"
#include "node-runtime/threads/device_manager.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/generation.hpp"
#include "node-runtime/trace/recorder.hpp"

/// An engine with emulated devices whose loops the test's own thread takes turn by turn.
namespace heddle::testing {

inline constexpr PlaceId first_device{1};
inline constexpr PlaceId second_device{2};

/// A task of a test: a kernel on tiles, the main output first.
struct TestTask {
  const Kernel* kernel;
  std::vector<protocol::Access> accesses;
};

/// Inserts the tasks one after the other.
inline Program insert_tasks(TaskStream& stream, std::vector<TestTask> tasks) {
  for (const TestTask& task : tasks) {
    co_await stream.insert(*task.kernel, std::span(task.accesses));
  }
}

class EngineOnDevices {
 public:
  static constexpr std::int32_t tile_size = 8;
  static constexpr std::size_t tile_bytes = sizeof(double) * tile_size * tile_size;
  static constexpr std::uint64_t plenty_bytes = std::uint64_t{1} << 20;

  explicit EngineOnDevices(int devices, EmulatedOptions emulated = {}) {
    if (emulated.memory_bytes > plenty_bytes) emulated.memory_bytes = plenty_bytes;
    set_ = make_devices({DeviceBackend::emulated, devices, std::move(emulated), {}});
    EngineOptions options;
    options.cpu_workers = 1;
    for (const auto& device : set_.devices) options.devices.push_back(device.get());
    store_ = std::make_unique<TileStore>(options.devices, std::uint64_t{1} << 30);
    engine_ = std::make_unique<Engine>(options, *store_, recorder_);
    trace::ThreadTrace& trace = recorder_.thread("test", 0);
    generation_ = std::make_unique<Generation>(*engine_, recorder_.thread("generation", 1));
    worker_ = std::make_unique<CpuWorker>(*engine_, 0, trace);
    copies_ = std::make_unique<CopyThread>(*engine_, trace);
    for (std::int32_t d = 0; d < devices; ++d) {
      managers_.push_back(std::make_unique<DeviceManager>(*engine_, d, trace));
    }
  }
  EngineOnDevices(const EngineOnDevices&) = delete;
  EngineOnDevices& operator=(const EngineOnDevices&) = delete;
  ~EngineOnDevices() {
    managers_.clear();
    copies_.reset();
    worker_.reset();
    generation_.reset();
    EXPECT_TRUE(engine_->is_valid());
    if (!engine_->failed()) {
      for (const protocol::MatrixId id : matrices_) engine_->remove_matrix(id);
    }
  }

  /// A matrix with a tile at each of these places.
  std::vector<TileRef> add_tiles(const std::vector<PlaceId>& places) {
    TileTable table;
    table.shapes.assign(places.size(), {tile_size, tile_size});
    table.home_places = places;
    table.is_local.assign(places.size(), true);
    table.spare_count = 2;
    const protocol::MatrixId id = engine_->add_matrix(std::move(table));
    matrices_.push_back(id);
    std::vector<TileRef> tiles;
    for (std::size_t i = 0; i < places.size(); ++i) {
      tiles.push_back({{id, static_cast<std::int32_t>(i)}, {NodeId{0}, places[i]}});
    }
    return tiles;
  }

  /// Starts a job, whose tasks no loop has taken yet.
  std::shared_ptr<JobRecord> start(std::vector<TestTask> tasks) {
    JobSpec spec;
    spec.name = "test";
    spec.matrices = matrices_;
    spec.program = [tasks = std::move(tasks)](TaskStream& stream) {
      return insert_tasks(stream, tasks);
    };
    std::shared_ptr<JobRecord> job = engine_->jobs().prepare(std::move(spec));
    engine_->jobs().start(job);
    generate();
    return job;
  }
  void cancel(JobRecord& job) { engine_->cancel(job); }
  /// Walks the program as far as it goes.
  void generate() {
    for (;;) {
      const Generation::Walked walked = generation_->walk();
      if (walked == Generation::Walked::no_program || walked == Generation::Walked::window_full) {
        return;
      }
    }
  }

  /// Takes turns until the job has ended; its result.
  JobResult finish(JobRecord& job) {
    const bool has_ended = turn_until([&job] {
      const std::scoped_lock lock(job.mutex);
      return job.is_done;
    });
    EXPECT_TRUE(has_ended);
    return job.result;
  }
  /// Takes turns of all loops until `condition`; false: for ten seconds in vain.
  bool turn_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      bool has_worked = false;
      generate();
      for (const auto& manager : managers_) {
        has_worked |= manager->turn();
        EXPECT_TRUE(manager->is_valid());
      }
      has_worked |= copies_->turn();
      EXPECT_TRUE(copies_->is_valid());
      has_worked |= worker_->turn();
      if (!has_worked) std::this_thread::yield();
    }
    return true;
  }

  /// The first element of a tile, which no task uses.
  double element(const TileRef& tile) {
    const protocol::BlockRef block = engine_->current_block(tile.id);
    const PlaceId place = tile.home.place;
    if (place == host_place) return store_->view(tile.id, block).data[0];
    DeviceCache& cache = store_->cache(place);
    const DeviceCache::Use use{store_->resident(block), protocol::AccessMode::read};
    EXPECT_TRUE(cache.try_acquire({&use, 1}));
    double value = 0;
    Device& device = *set_.devices[static_cast<std::size_t>(place.value()) - 1];
    const std::unique_ptr<Stream> stream = device.create_stream();
    stream->copy({&value, nullptr}, {store_->address(block), &device}, sizeof(double));
    stream->synchronize();
    cache.release({&use, 1});
    return value;
  }

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] TileStore& store() { return *store_; }
  [[nodiscard]] DeviceManager& manager(std::size_t device) { return *managers_[device]; }
  [[nodiscard]] CopyThread& copies() { return *copies_; }
  [[nodiscard]] CpuWorker& worker() { return *worker_; }

 private:
  DeviceSet set_;
  trace::Recorder recorder_{{}};
  std::unique_ptr<TileStore> store_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Generation> generation_;
  std::unique_ptr<CpuWorker> worker_;
  std::unique_ptr<CopyThread> copies_;
  std::vector<std::unique_ptr<DeviceManager>> managers_;
  std::vector<protocol::MatrixId> matrices_;
};

inline void fill_tile(const TileView& tile, double value) {
  for (std::int64_t j = 0; j < tile.columns; ++j) {
    for (std::int64_t i = 0; i < tile.rows; ++i) tile(i, j) = value;
  }
}
inline std::int64_t set_one(const KernelArguments& arguments) {
  fill_tile(arguments.tiles[0], 1);
  return 0;
}
/// output = input + 1.
inline std::int64_t input_plus_one(const KernelArguments& arguments) {
  fill_tile(arguments.tiles[0], arguments.tiles[1](0, 0) + 1);
  return 0;
}
inline std::int64_t plus_one(const KernelArguments& arguments) {
  fill_tile(arguments.tiles[0], arguments.tiles[0](0, 0) + 1);
  return 0;
}
inline constexpr Kernel test_set{.name = "test_set", .host = set_one, .emulated = set_one};
inline constexpr Kernel test_next{
    .name = "test_next", .host = input_plus_one, .emulated = input_plus_one};
inline constexpr Kernel test_add{.name = "test_add", .host = plus_one, .emulated = plus_one};
/// Only the host has it.
inline constexpr Kernel test_staged{.name = "test_staged", .host = plus_one};

}  // namespace heddle::testing
