#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/kernel_case.hpp"
#include "node-runtime/fine/fine_graph.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// A job's tasks that workers of `node` may divide: all of the node, or those of its host alone.
struct DividedTasks {
  const std::function<Program(TaskStream&)>& program;
  NodeId node;
  bool has_devices_tasks = false;
  std::int64_t small = 0;  ///< of the parts
  std::function<OperandShape(protocol::TileId)> shape_of;
};

/// The fine-grain forms of all tasks so far: a few for a job, as most of its tiles have one shape.
/// Any thread.
class FineGraphs {
 public:
  /// The graph of a kernel on tiles of these shapes, with parts of `small`; made when it is asked
  /// for the first time, which allocates, and kept. Valid as long as this object.
  const FineGraph& of(const KernelCase& what, std::int64_t small);
  /// Makes the graphs of all these tasks, so that the job makes none while it runs: walks its
  /// program. The number of fine tasks of the largest one; 0: nothing is to be divided.
  std::int32_t prepare(const DividedTasks& tasks);
  /// Graphs made so far.
  [[nodiscard]] std::size_t count();

 private:
  struct Key {
    const Kernel* kernel = nullptr;
    std::int64_t small = 0;
    KernelParameters parameters;
    std::array<OperandShape, FineTask::accesses_max> shapes;  ///< zeros behind the last one
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<const FineGraph>, Hash> graphs_;
};

}  // namespace heddle
