#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "node-runtime/fine/fine_scheduler.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "replay/simulation/simulated_job.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

/// Records of a simulated node, with the same rows and kinds as a real recorder's. Times count from
/// the start of the simulation.
class SimulationTrace {
 public:
  SimulationTrace(NodeId node, const SimulatedMachine& machine, bool enabled);

  void describe(std::int32_t matrix, const SimulatedMatrixSpec& spec);
  void worker_ran(std::int32_t worker, const protocol::Task& task, const TaskKind& kind,
                  std::int64_t start_ns, std::int64_t end_ns);
  /// A fine task; call it before divided(), which assigns them to the divided task.
  void worker_ran_fine(std::int32_t worker, const FineWork& work, std::int64_t start_ns,
                       std::int64_t end_ns);
  void divided(const protocol::Task& task, const TaskKind& kind, std::int64_t start_ns,
               std::int64_t end_ns);
  /// Ready tasks of the host when a worker has ended its task.
  void ready(std::int32_t worker, std::size_t count, std::int64_t time_ns);
  /// Ready tasks of a device when it was given one.
  void device_ready(std::int32_t device, std::size_t count, std::int64_t time_ns);
  /// Idle time before the next task that it runs.
  void worker_waited(std::int32_t worker, std::int64_t start_ns, std::int64_t end_ns);
  /// `stream`: from 0 on.
  void device_ran(std::int32_t device, std::int32_t stream, const protocol::Task& task,
                  const TaskKind& kind, std::int64_t start_ns, std::int64_t end_ns);
  void copied(const protocol::CopyAction& copy, trace::CopyReason reason, std::uint64_t bytes,
              std::int64_t posted_ns, std::int64_t start_ns, std::int64_t end_ns);
  void sent(const protocol::SendAction& send, std::uint64_t bytes, std::int64_t posted_ns,
            std::int64_t start_ns, std::int64_t end_ns);
  void received(const protocol::GrantAction& grant, std::uint64_t bytes, std::int64_t posted_ns,
                std::int64_t start_ns, std::int64_t end_ns);
  /// Generation of a job reached that item.
  void generated(std::int32_t job, std::uint64_t order, std::int64_t time_ns);
  /// Waits of the generation and the progress thread.
  void generation_waited(trace::WaitCause cause, std::int64_t start_ns, std::int64_t end_ns);
  void progress_waited(std::int64_t start_ns, std::int64_t end_ns);
  /// Returns all records and clears them.
  [[nodiscard]] trace::NodeTrace take();

 private:
  [[nodiscard]] trace::NameId name(const std::string& text);
  [[nodiscard]] trace::TaskRecord record_of(const protocol::Task& task, const std::string& kernel,
                                            std::int64_t start_ns, std::int64_t end_ns);
  static void add_accesses(trace::ThreadRecords& thread, const protocol::Task& task);
  void ran(trace::ThreadRecords& thread, const protocol::Task& task, const TaskKind& kind,
           std::int64_t start_ns, std::int64_t end_ns, std::uint8_t stream = 0);

  void count_ready(std::size_t thread, PlaceId place, std::size_t count, std::int64_t time_ns);
  void waited(std::size_t thread, trace::WaitCause cause, std::int64_t start_ns,
              std::int64_t end_ns);

  bool enabled_;
  std::size_t generation_ = 0;
  std::size_t first_device_ = 0;
  std::size_t copy_ = 0;
  std::size_t progress_ = 0;  ///< 0: a single node has none
  std::size_t divided_ = 0;   ///< 0: no task was divided
  trace::NodeTrace trace_;
  std::unordered_map<std::string, trace::NameId> names_;
};

}  // namespace heddle::replay
