#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "node-runtime/threads/engine.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle {

/// Runs tasks of devices' places on the host, for kernels that only the host has (generators,
/// reading files, checks): their tiles come to memory of this worker and go back. Thread: one CPU
/// worker.
class StagedRunner {
 public:
  StagedRunner(Engine& engine, std::int32_t worker)
      : engine_(engine), worker_(worker), sides_(engine.options().devices.size()) {}
  StagedRunner(const StagedRunner&) = delete;
  StagedRunner& operator=(const StagedRunner&) = delete;
  ~StagedRunner();

  /// Memory of a worker through which columns of such a tile pass (Kernel::is_by_columns): a few
  /// MiB, and at least a column.
  [[nodiscard]] static std::size_t bytes_by_columns(std::int64_t rows, std::int64_t columns);

  /// Returns when the task's outputs are on the device.
  void run(protocol::Task& task, trace::ThreadTrace& trace);
  /// Sets a range of columns of a tile that another worker has; false: there was none.
  bool help(trace::ThreadTrace& trace);

 private:
  /// What this worker has on one device; made when it is first needed.
  struct Side {
    std::unique_ptr<Stream> stream;
    double* memory = nullptr;
    std::size_t bytes = 0;
  };

  Side& side_of(std::size_t device, std::size_t bytes);
  void run_kernel(protocol::Task& task, Device& device, Side& side);
  /// The kernel on ranges of columns of its only tile, which pass through a few MiB. What is set
  /// anew is shared with workers that have no task; what is read comes in order.
  void run_by_columns(protocol::Task& task);
  /// One range, from the tile's column `first` on.
  void run_range(protocol::Task& task, std::int64_t first, std::int64_t at_a_time);

  Engine& engine_;
  std::int32_t worker_;
  std::vector<Side> sides_;  ///< by device
};

}  // namespace heddle
