#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/threads/job_record.hpp"
#include "node-runtime/threads/kernel_watch.hpp"
#include "node-runtime/threads/scheduler.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle {

/// Hears what goes wrong in kernels. Thread: any.
class KernelReports {
 public:
  KernelReports() = default;
  KernelReports(const KernelReports&) = delete;
  KernelReports& operator=(const KernelReports&) = delete;

  /// A kernel returned an info > 0; `info` is the job's.
  virtual void numerical_failure(JobRecord& job, std::int64_t info, double pivot) = 0;
  /// A task's kernel threw: fails its job, on all nodes; the node goes on.
  virtual void kernel_threw(const protocol::Task& task, const Error& error) = 0;

 protected:
  ~KernelReports() = default;
};

/// Runs what CPU workers took: tasks as a whole, or the fine tasks of divided ones (000 section
/// 3.2), on host memory. Kernels of cancelled jobs are skipped.
///
/// Thread: each worker calls with its own number; no lock but for the trace of divided tasks.
class HostExecutor {
 public:
  /// What kernels take on CPU workers, seconds; these sleep for so long and compute nothing. Empty,
  /// or 0: the kernel computes.
  using WorkerSeconds = std::function<double(const Kernel&, const KernelArguments&)>;

  HostExecutor(TileStore& store, trace::Recorder& recorder, KernelWatch& watch,
               KernelReports& reports, WorkerSeconds worker_seconds);

  /// Both return when they ended, ns of trace::now_ns().
  std::int64_t execute(const protocol::Task& task, std::int32_t worker, trace::ThreadTrace& trace);
  std::int64_t execute_fine(const FineWork& work, std::int32_t worker, trace::ThreadTrace& trace);
  /// One kernel of a task on the calling thread; its info. What the kernel throws is reported, and
  /// it counts as done.
  [[nodiscard]] std::int64_t run_kernel(const protocol::Task& task, std::int32_t worker,
                                        const Kernel& kernel, const KernelArguments& arguments);

  /// Makes a begun place ready for FineScheduler::open().
  void divide(DividedTask& divided, protocol::Task& task, const FineGraph& graph,
              trace::ThreadTrace& trace);
  /// Records a divided task that has ended; nobody else has to do with it any more.
  void record_divided(const DividedTask& divided);

 private:
  TileStore& store_;
  trace::Recorder& recorder_;
  KernelWatch& watch_;
  KernelReports& reports_;
  WorkerSeconds worker_seconds_;
  std::mutex divided_mutex_;                     ///< of the next one
  trace::ThreadTrace* divided_trace_ = nullptr;  ///< from the first divided task on
};

}  // namespace heddle
