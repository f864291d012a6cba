#pragma once

#include <cstdint>
#include <vector>

#include "node-runtime/scheduling/reader_tree.hpp"
#include "node-runtime/trace/node_trace.hpp"
#include "replay/simulation/simulated_job.hpp"
#include "replay/simulation/simulated_machine.hpp"

namespace heddle::replay {

struct SimulationOptions {
  std::int32_t window = 8192;  ///< per node, as runtime.window
  /// CPU workers, and devices without tasks, run other devices' tasks, as runtime.placement:
  /// dynamic has it.
  bool lends = false;
  bool traces = false;
  ReaderWay readers = ReaderWay::automatic;
  /// Seed of the choice among idle workers with different paces (SimulatedMachine::worker_paces).
  /// In a run the first to look takes the task.
  std::uint64_t seed = 1;
};

struct SimulatedNodeTotals {
  double busy_workers_s = 0;  ///< summed over workers, in kernels
  double busy_devices_s = 0;  ///< time with at least one kernel, summed over devices
  double generation_s = 0;
  double messages_s = 0;  ///< of the progress thread
  std::int64_t tasks = 0;
  /// Whole tasks that a lending node ran, by kind; each counts as the share of its kind's time that
  /// it takes. Empty: the node does not lend.
  std::vector<double> tasks_by_kind;
};

struct SimulationResult {
  double seconds = 0;  ///< from the start to the last task's end, plus the machine's job_s
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
  std::int64_t evictions = 0;  ///< tiles evicted from a device's memory
  std::int64_t events = 0;     ///< simulated events
  std::vector<SimulatedNodeTotals> nodes;
  std::vector<trace::NodeTrace> traces;  ///< with SimulationOptions::traces, by node
};

/// Runs a job's program on all nodes of a machine in virtual time, with the runtime's own protocol,
/// generation, window, pools and ready queues (DESIGN D1). Modelled are threads, devices and links:
///
/// - a node's generation thread appends items while the window has room;
/// - workers take the most urgent ready task of the host's queue;
/// - a device's manager launches kernels into streams, which share the device (SharedRates);
/// - a device's copies are serial in each direction, by priority;
/// - if not all tiles fit into a device's memory, they move by the runtime's directory (Residency),
///   those of the most urgent tasks first, before other copies; tiles without room start on the
///   host;
/// - where nodes lend, workers take devices' tasks by the runtime's own choice (LendingChoice);
///   tiles that they, or later the device, lack are copied first; devices without tasks take those
///   of others, whose tiles come and go at the rate between devices;
/// - grants and messages pass through the progress threads of both nodes; messages between hosts
///   through both interfaces, of nodes or hosts, whose rates are shared by concurrent ones; serial
///   from node to node; between nodes of a host through memory, which the receiver's progress
///   thread reads, or from device to device (DirectCopies).
///
/// Deterministic to the nanosecond. Throws Error(usage) if a place has no time for a kernel, or a
/// device no room for one task; Error(internal) with what is blocked if nothing can advance.
[[nodiscard]] SimulationResult simulate(const SimulatedMachine& machine, SimulatedJob& job,
                                        const SimulationOptions& options);

}  // namespace heddle::replay
