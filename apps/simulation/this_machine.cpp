#include "apps/simulation/this_machine.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fmt/core.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/simulation/measured_clock.hpp"
#include "apps/simulation/remembering_clock.hpp"
#include "apps/simulation/tuned_machine.hpp"
#include "apps/tuning/operands.hpp"
#include "apps/tuning/reading.hpp"
#include "apps/tuning/timing.hpp"
#include "base/assert.hpp"
#include "base/error.hpp"
#include "kernels/cpu/blas.hpp"
#include "node-runtime/device/cuda/cuda.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "node-runtime/topology/core_share.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {

ThisMachine::ThisMachine(const Config& config) : file_(config.machine) {
  std::optional<std::filesystem::path> named;
  if (config.machine) named = *config.machine;
  profile_ = prepare_machine(named);
}

void ThisMachine::check_file(const Config& config) const {
  if (config.machine == file_) return;
  throw Error(ErrorCode::usage,
              fmt::format("machine: {}: measurements of this machine are read once, for all cases "
                          "of a sweep; give them with --set",
                          config.machine.value_or("auto")));
}

void ThisMachine::add_devices(const config::Devices& wanted, MachineDescription& to) const {
  using config::DeviceBackend;
  const DeviceBackend backend = wanted.backend.value_or(DeviceBackend::cuda);
  if (backend == DeviceBackend::none || wanted.per_node == 0) return;
  const bool is_emulated = backend == DeviceBackend::emulated;
  const auto there = is_emulated ? std::int64_t{1} : std::ssize(probe_cuda().gpus);
  const std::int64_t count = wanted.per_node.value_or(there);
  const bool is_named = wanted.backend || wanted.per_node;
  if (count < 1 && !is_named) return;
  const std::string name(is_emulated ? "emulated" : "cuda");
  const auto& devices = profile_.tuning.measured.devices;
  const auto measured = std::ranges::find(devices, name, &DeviceMeasurement::backend);
  if (count < 1 || measured == devices.end()) {
    if (is_named) {
      throw Error(ErrorCode::usage,
                  fmt::format("runtime.devices: {} devices cannot be simulated: {}; or set "
                              "runtime.devices.backend to none",
                              name,
                              count < 1 ? "this machine has none; set runtime.devices.per_node"
                                        : "heddle tune has not measured their kernels here; run it "
                                          "with the same runtime.devices"));
    }
    to.note = fmt::format("left out, {} of them: heddle tune has not measured them", count);
    return;
  }
  to.machine.devices = static_cast<std::int32_t>(count);
  to.machine.device_streams = static_cast<std::int32_t>(wanted.streams.value_or(measured->streams));
  to.device = rates_of(measured->kernels, 0);
  to.device_source = "heddle tune's";
  to.device_backend = name;
  if (!is_emulated) to.inverse_block = gpu_inverse_block;
  add_copies(name, to.machine);
}

void ThisMachine::add_copies(std::string_view backend, replay::SimulatedMachine& to) const {
  const auto& devices = profile_.tuning.measured.devices;
  const auto measured = std::ranges::find(devices, backend, &DeviceMeasurement::backend);
  if (measured == devices.end()) return;
  set_copies(measured->copies, to);
}

Tuning ThisMachine::tuning(const MachineDescription& described) const {
  Tuning result = profile_.tuning;
  std::erase_if(result.measured.devices, [&](const DeviceMeasurement& one) {
    return described.machine.devices == 0 || one.backend != described.device_backend;
  });
  if (result.measured.devices.size() > 1) result.measured.devices.resize(1);
  return result;
}

MachineDescription ThisMachine::description() const {
  MachineDescription result;
  result.machine.name = "this machine";
  result.machine.cpu_workers = topology_.compute_thread_count();
  result.machine.cores = topology_.compute_thread_count();
  set_messages(profile_.tuning.measured, result.machine);
  return result;
}

const tuning::Waking& ThisMachine::waking() {
  if (!waking_) waking_ = tuning::measure_waking(topology_.cores());
  return *waking_;
}

MachineDescription ThisMachine::with_reading(const std::vector<std::string>& changes,
                                             MachineDescription start) {
  MachineDescription without = read_machine_description({}, changes, start);
  const Crowd crowd = crowd_of(without, 0);
  // On shared cores threads read when workers step aside, which is not timed.
  if (crowd.processes < 2 || !has_spare_cores(crowd)) return without;
  if (!readings_.contains(crowd)) {
    static_cast<void>(load_blas(profile_.blas));
    readings_[crowd] = tuning::reading_beside_work(processes_of(crowd));
  }
  const auto& reading = readings_[crowd];
  if (!reading) return without;
  start.machine.memory.bytes_per_s = reading->rate * 1e9;
  start.machine.read_s = reading->short_us * 1e-6 + waking().ring_s;
  return read_machine_description({}, changes, start);
}

ThisMachine::Crowd ThisMachine::crowd_of(const MachineDescription& machine,
                                         double matrix_bytes) const {
  const replay::SimulatedMachine& nodes = machine.machine;
  const double share = static_cast<double>(std::min(nodes.nodes, nodes.nodes_per_host)) /
                       static_cast<double>(nodes.nodes);
  const double bytes = std::min(matrix_bytes * share / nodes.workers_on_host(),
                                static_cast<double>(tuning::operand_bytes));
  const std::int32_t workers = std::min(nodes.workers_on_host(), topology_.compute_thread_count());
  const std::int32_t processes = std::min({nodes.nodes, nodes.nodes_per_host, workers});
  return {workers, processes, static_cast<std::int64_t>(bytes)};
}

ThisMachine::TimedHere& ThisMachine::timed_here(const Crowd& crowd) {
  TimedHere& here = clocks_[crowd];
  if (here.clock != nullptr) return here;
  static_cast<void>(load_blas(profile_.blas));
  auto timing = std::make_unique<MeasuredClock>(processes_of(crowd), crowd.operand_bytes);
  here.timing = timing.get();
  here.clock = std::make_shared<RememberingClock>(std::move(timing));
  return here;
}

/// Where the nodes of a run that its launcher does not bind have theirs.
std::vector<tuning::Workers> ThisMachine::processes_of(const Crowd& crowd) const {
  std::vector<tuning::Workers> processes;
  for (std::int32_t p = 0; p < crowd.processes; ++p) {
    tuning::Workers& own = processes.emplace_back();
    own.count = crowd.workers / crowd.processes + (p < crowd.workers % crowd.processes ? 1 : 0);
    const CoreShare share{.sharers = crowd.processes, .position = p};
    const std::vector<CpuCore> part = share.part_of(topology_.cores(), own.count);
    if (part.empty()) continue;
    own.cores.assign(part.begin(), part.begin() + own.count);
    constexpr std::int32_t others = 2;  // generation, and messages
    const auto beside = cores_beside_workers(part, own.count, others);
    own.beside.assign(beside.begin(), beside.end());
  }
  return processes;
}

namespace {

/// The nodes of host 0.
std::vector<NodeId> first_nodes(const replay::SimulatedMachine& machine) {
  std::vector<NodeId> nodes;
  for (NodeId node{0}; node.value() < machine.nodes; ++node) {
    if (machine.host_of(node) == 0) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

RehearsalCast ThisMachine::cast_of(const Played& played) const {
  constexpr std::int64_t elements_max = (std::int64_t{1} << 30) / sizeof(double);  // of a host
  RehearsalCast cast;
  const Crowd crowd = crowd_of(played.machine, 0);
  cast.processes = processes_of(crowd);
  cast.copies_have_cores = has_spare_cores(crowd);
  const std::vector<NodeId> nodes = first_nodes(played.machine.machine);
  for (std::size_t p = 0; p < cast.processes.size(); ++p) {
    const auto node = static_cast<std::size_t>(nodes[p].value());
    const BeginOrder order = node < played.orders.size() ? played.orders[node] : BeginOrder();
    cast.plans.push_back(
        plan_rehearsal(played.what, nodes[p], order, elements_max / std::ssize(cast.processes)));
  }
  return cast;
}

std::unique_ptr<RehearsedRatios> ThisMachine::rehearse(const Played& now, const Played& then) {
  HEDDLE_CHECK(now.machine.host.empty() && then.machine.host.empty(),
               "a machine with rates of its own is rehearsed here");
  static_cast<void>(load_blas(profile_.blas));
  return std::make_unique<RehearsedRatios>(cast_of(now), cast_of(then));
}

RehearsedTimes ThisMachine::rehearse(const Played& what) {
  HEDDLE_CHECK(what.machine.host.empty(), "a machine with rates of its own is rehearsed here");
  static_cast<void>(load_blas(profile_.blas));
  return RehearsedTimes(cast_of(what));
}

std::shared_ptr<KernelClock> ThisMachine::clock_of(const MachineDescription& machine,
                                                   double matrix_bytes) {
  std::shared_ptr<KernelClock> host;
  if (machine.host.empty()) host = timed_here(crowd_of(machine, matrix_bytes)).clock;
  return std::make_shared<MachineClock>(machine, std::move(host));
}

double ThisMachine::ratio(const KernelCase& what, const MachineDescription& machine,
                          const KernelCase& other, const MachineDescription& of_other,
                          double matrix_bytes, Runner runner) {
  if (runner == Runner::device || !machine.host.empty() || !of_other.host.empty()) {
    const double now = clock_of(machine, matrix_bytes)->seconds(what, runner);
    const double then = clock_of(of_other, matrix_bytes)->seconds(other, runner);
    return now > 0 && then > 0 ? now / then : 0;
  }
  const Crowd now = crowd_of(machine, matrix_bytes);
  const Crowd then = crowd_of(of_other, matrix_bytes);
  return ratios_.ratio(CrowdedCase<Crowd>{what, now}, CrowdedCase<Crowd>{other, then}, [&] {
    return timed_here(now).timing->ratio(what, *timed_here(then).timing, other);
  });
}

}  // namespace heddle
