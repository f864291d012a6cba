#pragma once

#include <cstdint>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "replay/simulation/simulated_job.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

struct SimulationOptions {
  std::int32_t window = 8192;  ///< of each node, as runtime.window
  /// CPU workers, and devices without tasks, run other devices' tasks, as runtime.placement:
  /// dynamic has it.
  bool lends = false;
  bool traces = false;
  /// Of what is drawn: which of a node's idle workers takes a task, where they have paces of their
  /// own (SimulatedMachine::worker_paces). In a run whoever looks first takes it.
  std::uint64_t seed = 1;
};

struct SimulatedNodeTotals {
  double busy_workers_s = 0;  ///< of all of them together, with kernels
  double busy_devices_s = 0;  ///< in which a device had a kernel
  double generation_s = 0;
  double messages_s = 0;  ///< of the progress thread
  std::int64_t tasks = 0;
  /// Of lending nodes: whole tasks, each counted as what it takes of its kind's time.
  std::vector<double> tasks_by_kind;
};

struct SimulationResult {
  double seconds = 0;  ///< from the beginning to the last task's end, and the machine's job_s
  double flops = 0;
  std::int64_t tasks = 0;
  std::int64_t messages = 0;
  std::uint64_t message_bytes = 0;
  std::int64_t copies = 0;
  std::uint64_t copied_bytes = 0;
  std::int64_t tasks_lent = 0;  ///< of devices' places, what CPU workers ran
  /// Copies of devices' tiles to the host, for lent tasks or for want of room.
  std::int64_t write_backs = 0;
  std::uint64_t written_bytes = 0;
  std::int64_t fetches = 0;  ///< of what is on the host by then, for devices
  std::uint64_t fetched_bytes = 0;
  std::int64_t evictions = 0;  ///< times that a tile left a device's memory for others
  std::int64_t events = 0;     ///< of the simulation
  std::vector<SimulatedNodeTotals> nodes;
  std::vector<trace::NodeTrace> traces;  ///< with SimulationOptions::traces, by node
};

/// Walks a job's program on all nodes of a machine in virtual time: by the protocol of the runtime
/// itself, with its generation, window, pools and ready queues (DESIGN D1). Only what threads,
/// devices and links take is modelled:
///
/// - a node's generation thread appends an item after the other while the window has room;
/// - workers take the most urgent ready task of the host's queue;
/// - a device's manager launches kernels into its streams; those of several streams share the
///   device (SharedRates);
/// - of each device copies to it, and those to the host, are done one after the other, by urgency;
/// - where not all tiles fit into a device's memory, they come and go by the runtime's own
///   directory (Residency), the most urgent tasks' first, before other copies; those that the last
///   ones have left no room for are on the host in the beginning;
/// - where nodes lend, workers take devices' tasks by the runtime's own choice (LendingChoice);
///   tiles that they, or later the device, lack are copied first; devices without tasks take those
///   of others, whose tiles come and go at the rate between devices;
/// - grants and messages pass through the progress threads of both nodes, messages between hosts
///   through the interfaces of both, whose rates are shared by what passes at a time; from one node
///   to another they follow each other.
///
/// The same input gives the same result, to the nanosecond. Throws Error(usage) when a place has no
/// time for a kernel, or a device no room for one task, and Error(internal) with what is blocked
/// when nothing can go on.
[[nodiscard]] SimulationResult simulate(const SimulatedMachine& machine, SimulatedJob& job,
                                        const SimulationOptions& options);

}  // namespace heddle::replay
