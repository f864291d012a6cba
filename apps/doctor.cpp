#include "apps/doctor.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fmt/core.h>
#include <map>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/command.hpp"
#include "apps/doctor_collectives.hpp"
#include "apps/doctor_facts.hpp"
#include "apps/doctor_table.hpp"
#include "apps/file_uses.hpp"
#include "apps/report.hpp"
#include "config/config.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/probe/transport_probe.hpp"
#include "node-runtime/wanted_devices.hpp"

namespace heddle {
namespace {

using nlohmann::json;

/// Per GPU, which others may use too; much more than is transferred.
constexpr std::uint64_t probed_memory_bytes = std::uint64_t{256} << 20;
/// More for GPUs: a few MiB take hardly longer than an empty transfer.
constexpr std::size_t gpu_timed_bytes = std::size_t{16} << 20;
constexpr std::size_t timed_bytes_min = 4096;

/// What --inject makes go wrong on a node.
struct InjectedFaults {
  FaultPlan devices;
  HostMemoryFaults host;
};

InjectedFaults faults_of(const std::vector<std::string>& names, std::int32_t node) {
  InjectedFaults faults;
  FaultPlan& plan = faults.devices;
  for (const std::string& name : names) {
    const auto at = name.find('@');
    if (at != std::string::npos && name.substr(at + 1) != std::to_string(node)) continue;
    const std::string what = name.substr(0, at);
    if (what == "refuse-mappings") {
      plan.refuse_mappings = true;
    } else if (what == "refuse-peers") {
      plan.refuse_peers = true;
    } else if (what == "stall-mappings") {
      plan.stall_mappings = true;
    } else if (what == "no-memory") {
      plan.allocation_bytes_max = 0;
    } else if (what == "refuse-board") {
      faults.host.refuse_board = true;
    } else if (what == "refuse-reading") {
      faults.host.refuse_reading = true;
    } else {
      throw Error(ErrorCode::usage, fmt::format("--inject: there is no fault '{}'", what));
    }
  }
  return faults;
}

DeviceSet open_devices(const Config& config, const DoctorOptions& options,
                       const GpuNeighbours& neighbours, std::int32_t node) {
  DeviceOptions wanted = wanted_devices(config.runtime.devices);
  wanted.emulated.faults = faults_of(options.faults, node).devices;
  wanted.cuda.nodes = neighbours.nodes;
  wanted.cuda.node = neighbours.node;
  if (!wanted.cuda.memory_bytes) wanted.cuda.memory_bytes = probed_memory_bytes;
  return make_devices(wanted);
}

/// As many bytes as the devices of all nodes have room for.
ProbeOptions options_for(const DeviceSet& devices, const Communicator& communicator) {
  ProbeOptions options;
  std::array<std::uint64_t, 2> mine{devices.backend == DeviceBackend::cuda, UINT64_MAX};
  for (const auto& device : devices.devices) {
    // A device without room does not limit the transfers of the others.
    const std::uint64_t room = device->memory_available();
    if (room >= timed_bytes_min) mine[1] = std::min(mine[1], room);
  }
  const std::vector<std::uint64_t> all = communicator.all_gather(mine);
  std::uint64_t room = UINT64_MAX;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    if (all[i] != 0) options.timed_bytes = gpu_timed_bytes;
    room = std::min(room, all[i + 1]);
  }
  options.timed_bytes =
      std::max<std::size_t>(timed_bytes_min, std::min<std::uint64_t>(options.timed_bytes, room));
  options.checked_bytes = std::min(options.checked_bytes, options.timed_bytes);
  return options;
}

/// Results of all nodes, on node 0.
struct Findings {
  std::vector<NodeSheet> nodes;
  std::vector<PairReport> pairs;
  CollectiveSheet collectives;

  [[nodiscard]] std::size_t unreachable() const {
    return static_cast<std::size_t>(std::count_if(
        pairs.begin(), pairs.end(), [](const PairReport& p) { return p.best() == nullptr; }));
  }
};

Findings collect(const std::vector<std::string>& texts) {
  Findings all;
  // Both nodes of a pair report it.
  std::map<std::pair<ProbePlace, ProbePlace>, PairReport> pairs;
  std::vector<HostMemory> memories;
  for (const std::string& text : texts) {
    const json node = json::parse(text);
    all.nodes.push_back(sheet_from_json(node.at("node")));
    memories.push_back(host_memory_from_json(node.at("host_memory")));
    for (const json& row : node.at("pairs")) {
      PairReport pair = pair_from_json(row);
      const std::pair key{pair.first, pair.second};
      pairs.emplace(key, std::move(pair));
    }
  }
  for (auto& [key, pair] : pairs) {
    const NodeSheet& first = all.nodes[static_cast<std::size_t>(pair.first.node)];
    const NodeSheet& second = all.nodes[static_cast<std::size_t>(pair.second.node)];
    const std::string apart = what_separates(first, second);
    for (Attempt& attempt : pair.attempts) {
      if (attempt.way != Way::mapped || attempt.works || apart.empty()) continue;
      attempt.reason += "; " + apart;
    }
    all.pairs.push_back(std::move(pair));
  }
  all.collectives = collective_sheet(all.nodes, memories, all.pairs);
  return all;
}

void write(const Findings& findings, const std::string& path, Run& run) {
  json nodes = json::array();
  for (const NodeSheet& node : findings.nodes) nodes.push_back(to_json(node));
  json pairs = json::array();
  for (const PairReport& pair : findings.pairs) pairs.push_back(to_json(pair));
  const json all{{"version", heddle_version()},
                 {"status", findings.unreachable() == 0 ? "ok" : "failed"},
                 {"nodes", std::move(nodes)},
                 {"pairs", std::move(pairs)},
                 {"collectives", to_json(findings.collectives)}};
  run.results().add_text(path, json_text(all));
  run.results().commit();
}

/// Runs the probe. Ends this process if a node is lost, since MPI would wait for it.
std::vector<PairReport> probe(TransportProbe& transport, const DoctorOptions& options, Run& run) {
  const bool is_shown = run.launcher().rank == 0 && options.verbosity == Verbosity::normal &&
                        stderr_is_watched(run.launcher());
  const auto tell = [&](std::size_t round, std::size_t rounds) {
    if (!is_shown) return;
    static_cast<void>(
        std::fputs(fmt::format("\rprobing  {} of {}\x1b[K", round + 1, rounds).c_str(), stderr));
    static_cast<void>(std::fflush(stderr));
  };
  const auto end_line = [&] {
    if (is_shown) static_cast<void>(std::fputs("\r\x1b[K", stderr));
  };
  try {
    std::vector<PairReport> pairs = transport.run(tell);
    end_line();
    return pairs;
  } catch (const Error& error) {
    end_line();
    run.complain(error.what());
    run.leave(exit_status(error.code()));
  }
}

int show(const Findings& findings, const ProbeOptions& probing, const DoctorOptions& options,
         Run& run) {
  if (options.report) write(findings, *options.report, run);
  if (options.verbosity != Verbosity::quiet) {
    print(fmt::format("heddle {}: doctor\n{}\n", heddle_version(), std::string(80, '-')) +
          facts_table(findings.nodes) +
          ways_table(findings.pairs, probing, options.verbosity == Verbosity::verbose) +
          collectives_table(findings.collectives));
  }
  const std::size_t unreachable = findings.unreachable();
  if (unreachable == 0) return 0;
  print_error(fmt::format("{} of {} pairs of places have no way that works", unreachable,
                          findings.pairs.size()));
  return exit_status(ErrorCode::internal);
}

}  // namespace

int doctor(const DoctorOptions& options, Run& run) {
  const bool is_first = run.launcher().rank == 0;
  Config config;
  run.mpi().throw_together(trouble_of([&] {
    config = Config::from_text("{}", "doctor", options.overrides);
    FileUses files;
    if (options.report) files.writes("--report", *options.report);
    if (is_first) files.check_writable(run.janitor());
  }));
  const Communicator communicator =
      run.mpi().active() ? Communicator(MPI_COMM_WORLD) : Communicator();
  const GpuNeighbours neighbours = find_gpu_neighbours(config.runtime.devices, communicator);
  DeviceSet devices;
  std::optional<NodeSheet> sheet;
  communicator.throw_together(trouble_of(
      [&] { devices = open_devices(config, options, neighbours, communicator.rank()); }));
  share_emulated_devices(devices, config.runtime.devices, communicator);
  communicator.throw_together(
      trouble_of([&] { sheet = describe_node(communicator.rank(), run.mpi().active(), devices); }));
  const ProbeOptions probing = options_for(devices, communicator);
  const HostMemory memory =
      try_host_memory(communicator, faults_of(options.faults, communicator.rank()).host);
  json found{{"node", to_json(*sheet)}, {"pairs", json::array()}, {"host_memory", to_json(memory)}};
  {
    TransportProbe transport(communicator, devices.devices, probing);
    for (const PairReport& pair : probe(transport, options, run)) {
      found["pairs"].push_back(to_json(pair));
    }
  }
  const std::vector<std::string> texts =
      communicator.gather(found.dump(-1, ' ', false, json::error_handler_t::replace));
  std::uint64_t status = 0;
  communicator.throw_together(trouble_of([&] {
    if (is_first) status = static_cast<std::uint64_t>(show(collect(texts), probing, options, run));
  }));
  return static_cast<int>(communicator.all_gather(status)[0]);
}

}  // namespace heddle
