#include "apps/simulation/recorded_machine.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "apps/simulation/machine_hosts.hpp"
#include "base/median.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/tuning.hpp"
#include "replay/device_times.hpp"
#include "replay/graph.hpp"

namespace heddle {
namespace {

using nlohmann::json;
using replay::SimulatedMachine;
using replay::Way;

/// `memory`: what messages between neighbours took.
void describe_devices(const replay::RunTrace& run, const json& about, const ThisMachine& here,
                      bool is_like_here, const std::optional<Way>& memory, MachineDescription& to) {
  to.device_backend = about.value("device_backend", "cuda");
  to.machine.device_streams = std::max(1, replay::side_by_side(run));
  // What the run does not tell is as it is here, if that is such a machine.
  if (is_like_here) here.add_copies(to.device_backend, to.machine);
  const replay::CopyWays ways = replay::copy_ways(run);
  to.machine.to_device = ways.to_device.value_or(to.machine.to_device);
  to.machine.to_host = ways.to_host.value_or(to.machine.to_host);
  // Without copies between devices of a node, those of neighbours tell. Their latency is in that of
  // `memory`.
  if (memory) to.machine.to_peer = {0, memory->bytes_per_s};
  to.machine.to_peer = ways.to_peer.value_or(to.machine.to_peer);
  // Cholesky's diagonal tiles have inverse blocks beside them, or not.
  const auto has_inverses = [&](const replay::Task& task) {
    return run.kernel_of(task) == kernel::potrf.name && task.access_count > 1;
  };
  if (std::ranges::any_of(run.tasks, has_inverses)) to.inverse_block = gpu_inverse_block;
}

json json_of(const std::optional<Way>& way) {
  if (!way) return nullptr;
  return {{"latency_us", way->latency_s * 1e6}, {"rate", way->bytes_per_s * 1e-9}};
}

json json_of(const std::optional<double>& seconds) {
  return seconds ? json(*seconds * 1e6) : json();
}

/// What a run of one node tells little of is as it is here, if that is such a machine.
void add_wakings(const RecordedMachine& recorded, ThisMachine& here, SimulatedMachine& to) {
  to.wakings = recorded.costs.wakings;
  const bool is_like_here = recorded.cpu_model == here.cpu_model();
  for (replay::WakingTimes& one : to.wakings) {
    if (!one.seconds.empty()) continue;
    if (one.waited_s == 0) {
      one.seconds = {to.task_s};  // it still looks
    } else if (!is_like_here) {
      one.seconds = {to.wake_s};
    } else {
      const bool is_deep = one.waited_s == to.wakings.back().waited_s;
      one.seconds = is_deep ? here.waking().after_long : here.waking().after_short;
    }
  }
}

json json_of(const std::vector<replay::WakingTimes>& wakings) {
  json all = json::array();
  for (const replay::WakingTimes& one : wakings) {
    all.push_back({{"waited_us", one.waited_s * 1e6},
                   {"count", one.seconds.size()},
                   {"median_us", median(one.seconds) * 1e6}});
  }
  return all;
}

}  // namespace

RecordedMachine recorded_machine(const replay::RunTrace& run, std::int32_t job, const json& about,
                                 std::int32_t window, ThisMachine& here) {
  RecordedMachine result;
  result.description = here.description();
  SimulatedMachine& machine = result.description.machine;
  machine.name = fmt::format("that of {}", run.source);
  machine.nodes = about.value("nodes", 1);
  machine.nodes_per_host = about.value("nodes_per_host", 1);
  take_hosts(run.hosts, machine);
  take_hosts(about, machine);
  machine.cpu_workers = about.value("cpu_workers", 1);
  machine.devices = about.value("devices", 0);
  if (about.contains("device_memory") && about.at("device_memory").is_number()) {
    machine.device_memory_bytes = about.at("device_memory").get<std::uint64_t>();
  }
  const json where = json::parse(run.where);
  const bool says = where.is_object();
  if (says) result.cpu_model = where.value("cpu", "");
  machine.cores = says ? where.value("host_cores", 0) : 0;
  result.ways = replay::message_ways(run, job, machine);
  machine.memory = result.ways.memory.value_or(machine.memory);
  machine.network = result.ways.network.value_or(machine.network);
  if (machine.devices > 0) {
    const bool is_like_here = result.cpu_model == here.cpu_model();
    describe_devices(run, about, here, is_like_here, result.ways.memory, result.description);
  }
  result.costs = replay::runtime_costs(run, replay::Graph(run, job), machine, window);
  machine.refill_s = result.costs.refill_s.value_or(machine.refill_s);
  machine.append_s = result.costs.append_s.value_or(machine.append_s);
  machine.task_s = result.costs.task_s.value_or(machine.task_s);
  machine.look_s = result.costs.look_s.value_or(machine.look_s);
  if (result.costs.wake_s) {
    machine.wake_s = *result.costs.wake_s;
  } else if (result.cpu_model == here.cpu_model()) {
    machine.wake_s = here.waking().wake_s;
  }
  add_wakings(result, here, machine);
  return result;
}

std::string RecordedMachine::messages_text() const {
  std::vector<std::string> parts;
  const auto add = [&](const std::optional<Way>& way, const char* by) {
    if (!way) return;
    constexpr double told_max = 1e12;  // a rate beyond is no rate: messages were all alike
    const std::string rate = way->bytes_per_s < told_max
                                 ? fmt::format("and {:.2f} GB/s", way->bytes_per_s * 1e-9)
                                 : std::string("whatever their size");
    parts.push_back(fmt::format("{:.1f} us {} by {}", way->latency_s * 1e6, rate, by));
  };
  add(ways.memory, "memory");
  add(ways.network, "network");
  return fmt::format("{}", fmt::join(parts, ", "));
}

json RecordedMachine::to_json() const {
  return {
      {"memory", json_of(ways.memory)},       {"network", json_of(ways.network)},
      {"append_us", json_of(costs.append_s)}, {"task_us", json_of(costs.task_s)},
      {"look_us", json_of(costs.look_s)},     {"wake_us", json_of(costs.wake_s)},
      {"refill_us", json_of(costs.refill_s)}, {"wakings", json_of(description.machine.wakings)}};
}

}  // namespace heddle
