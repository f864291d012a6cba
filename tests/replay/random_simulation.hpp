#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "replay/simulation/simulator.hpp"
#include "tests/replay/scripted_job.hpp"

namespace heddle::replay {

/// A machine whose runtime costs nothing.
inline SimulatedMachine free_machine() {
  SimulatedMachine machine;
  machine.name = "free";
  machine.append_s = machine.task_s = machine.wake_s = 0;
  machine.launch_s = machine.notice_s = machine.message_s = 0;
  machine.pause_s = machine.look_s = 0;
  for (Way* way : {&machine.to_device, &machine.to_host, &machine.to_peer, &machine.network,
                   &machine.memory}) {
    *way = {0, 1e9};
  }
  return machine;
}

/// Random programs on random machines.
struct RandomSimulation {
  explicit RandomSimulation(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int32_t n) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
    };
    machine.name = "random";
    machine.nodes_per_host = 1 + below(2);
    machine.nodes = machine.nodes_per_host * (1 + below(3));
    machine.cpu_workers = 1 + below(4);
    machine.devices = below(3);
    machine.device_streams = 1 + below(3);
    options.window = 1 + below(2) * below(50);
    options.traces = true;
    std::vector<simulation::SimulatedMatrix> matrices(static_cast<std::size_t>(1 + below(3)));
    for (std::size_t m = 0; m < matrices.size(); ++m) {
      matrices[m].temporary = m > 0 && below(2) == 0;
      matrices[m].spare_count = below(3);
      for (std::int32_t t = 2 + below(14); t > 0; --t) {
        matrices[m].homes.push_back(
            {NodeId{below(machine.nodes)}, PlaceId{below(machine.devices + 1)}});
        matrices[m].classes.push_back(below(3));
      }
    }
    simulation::RandomProgramOptions wanted;
    wanted.tasks = 5 + below(60);
    simulation::Program program = random_program(wanted, matrices, random);
    for (simulation::Statement& statement : program.statements) statement.work = random() % 3;
    job = std::make_unique<ScriptedJob>(
        std::move(program), matrices,
        std::vector<TaskKind>{
            {"a", 1, 1, 1e-6, 2e-6, 1}, {"b", 1, 1, 20e-6, 3e-6, 1}, {"c", 1, 1, 5e-6, 50e-6, 1}},
        std::uint64_t{1000} << below(12));
    machine.cores = below(3) * below(8);  // for some hosts too few
    machine.host_order = below(2) == 0 ? HostOrder::consecutive : HostOrder::round;
    machine.interface_owner = below(2) == 0 ? InterfaceOwner::node : InterfaceOwner::host;
  }

  SimulatedMachine machine;
  SimulationOptions options;
  std::unique_ptr<ScriptedJob> job;
};

}  // namespace heddle::replay
