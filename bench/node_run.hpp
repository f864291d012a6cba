#pragma once

#include <chrono>
#include <ctime>
#include <mpi.h>

#include "node-runtime/node.hpp"

/// What heddle's own drivers share.
namespace heddle {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Calls `run` with a node alone, or with one of those that mpiexec has started; its exit status.
template <class Run>
int run_on_node(const Config& config, bool is_one_of_several, const Run& run) {
  if (!is_one_of_several) {
    Node node(config);
    return run(node);
  }
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  {
    Node node(config, MPI_COMM_WORLD);
    status = run(node);
  }
  MPI_Finalize();
  return status;
}

/// Seconds that this node's threads have spent in kernels (workers and device managers) and in
/// copies, by the clock, and that all of them have computed.
struct Work {
  double kernels = 0;
  double copies = 0;
  double processor = 0;
};

inline Work work_of(const Node& node) {
  Work work;
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  work.processor = static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  for (const ThreadReport& thread : node.threads()) {
    const bool computes = thread.role.starts_with("worker") || thread.role.starts_with("device");
    if (computes) work.kernels += thread.busy_seconds;
    if (thread.role == "copy") work.copies += thread.busy_seconds;
  }
  return work;
}

}  // namespace heddle
