#include "replay/simulation/simulator.hpp"

#include <fmt/core.h>
#include <utility>

#include "base/error.hpp"
#include "replay/simulation/simulated_node.hpp"

namespace heddle::replay {

void SimulatedWorld::begin_flow(const FlowUser& user, double amount, ResourceId first,
                                ResourceId second) {
  const FlowId flow = rates.begin(now_ns, amount, first, second, foreseen);
  const auto number = static_cast<std::size_t>(flow.value());
  if (flow_users.size() <= number) flow_users.resize(number + 1);
  flow_users[number] = user;
  push_foreseen();
}

void SimulatedWorld::end_flow(FlowId flow) {
  const FlowUser user = flow_users[static_cast<std::size_t>(flow.value())];
  rates.end(now_ns, flow, foreseen);
  push_foreseen();
  SimulatedNode& node = at(user.node);
  switch (user.kind) {
    case FlowUser::Kind::kernel:
      return node.kernel_ends(user.number);
    case FlowUser::Kind::message:
      return node.message_sent(user.number);
    case FlowUser::Kind::direct:
      return node.direct_copies().copied(user.number);
  }
}

void SimulatedWorld::push_foreseen() {
  for (const SharedRates::Foreseen& end : foreseen) {
    events.push(end.end_ns, {Event::Kind::flow_ends, NodeId{0}, end.resource.value()});
  }
  foreseen.clear();
}

namespace {

std::vector<std::int32_t> hosts_of(const SimulatedMachine& machine) {
  std::vector<std::int32_t> hosts;
  for (std::int32_t n = 0; n < machine.nodes; ++n) hosts.push_back(machine.host_of(NodeId{n}));
  return hosts;
}

class Simulation {
 public:
  Simulation(const SimulatedMachine& machine, SimulatedJob& job, const SimulationOptions& options)
      : world_{machine, job, options, ReaderTree::of(options.readers, hosts_of(machine))} {
    for (std::int32_t i = 0; i < machine.interface_count(); ++i) {
      const double rate = machine.network.bytes_per_s;
      world_.interfaces.push_back(
          {world_.rates.add_resource(rate), world_.rates.add_resource(rate)});
    }
    for (std::int32_t n = 0; n < machine.nodes; ++n) {
      world_.nodes.push_back(std::make_unique<SimulatedNode>(world_, NodeId{n}));
    }
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation() {
    for (const auto& node : world_.nodes) {
      if (!node->is_over()) node->abandon();  // an error is being thrown
    }
  }

  SimulationResult run() {
    for (const auto& node : world_.nodes) node->begin();
    while (!world_.events.empty()) {
      const auto next = world_.events.pop();
      if (const auto soon = world_.events.soon(); !soon.empty()) world_.fetch_ahead(soon);
      world_.now_ns = next.time_ns;
      happen(next.event);
      ++world_.result.events;
    }
    check_end();
    for (const auto& node : world_.nodes) {
      world_.result.tasks += node->totals.tasks;
      world_.result.nodes.push_back(node->totals);
      world_.result.evictions += node->evictions();
      node->end_waits(last_end_ns_);
      if (world_.options.traces) world_.result.traces.push_back(node->trace().take());
    }
    world_.result.seconds = static_cast<double>(last_end_ns_) * 1e-9 + world_.machine.job_s;
    return std::move(world_.result);
  }

 private:
  void happen(const Event& event) {
    SimulatedNode& node = world_.at(event.node);
    switch (event.kind) {
      case Event::Kind::generate:
        return node.generate();
      case Event::Kind::task_ends:
        last_end_ns_ = world_.now_ns;
        return node.task_ends(event.number);
      case Event::Kind::kernel_launched:
        return node.kernel_launched(event.number);
      case Event::Kind::kernel_noticed:
        last_end_ns_ = world_.now_ns;
        return node.kernel_noticed(event.number);
      case Event::Kind::manager_looks:
        return node.manager_looks(event.number);
      case Event::Kind::lane_is_free:
        return node.copies().lane_is_free(event.number);
      case Event::Kind::copy_ends:
        return node.copy_ends(event.number);
      case Event::Kind::flow_ends: {
        const SharedRates::Foreseen end{ResourceId{event.number}, world_.now_ns};
        if (const auto flow = world_.rates.comes(end, world_.foreseen)) {
          return world_.end_flow(*flow);
        }
        return world_.push_foreseen();
      }
      case Event::Kind::ask_arrives:
        return pass(event, Event::Kind::ask_seen);
      case Event::Kind::offer_arrives:
        return pass(event, Event::Kind::offer_seen);
      case Event::Kind::ask_seen:
      case Event::Kind::offer_seen:
        return node.hint_seen(event.kind, event.number);
      case Event::Kind::grant_arrives:
        return pass(event, Event::Kind::grant_seen);
      case Event::Kind::grant_seen:
        return node.grant_seen(event.number);
      case Event::Kind::message_starts:
        return node.messages().starts(event.number);
      case Event::Kind::message_arrives:
        return node.message_arrives(event.number);
      case Event::Kind::direct_begins:
        return node.direct_copies().begins(event.number);
      case Event::Kind::direct_ends:
        return node.direct_copies().ends(event.number);
      case Event::Kind::message_seen:
        return node.message_seen(event.number);
      case Event::Kind::progress_looks:
        return node.progress().looks();
    }
  }

  /// Passes an event through the progress thread of its node.
  void pass(const Event& event, Event::Kind next) {
    world_.at(event.node)
        .progress()
        .arrives({{next, event.node, event.number}, world_.machine.message_s});
  }

  void check_end() const {
    for (std::size_t n = 0; n < world_.nodes.size(); ++n) {
      if (world_.nodes[n]->is_over()) continue;
      throw Error(ErrorCode::internal,
                  fmt::format("the simulation stands still after {} events: node {}: {}",
                              world_.result.events, n, world_.nodes[n]->blockage()));
    }
  }

  SimulatedWorld world_;
  std::int64_t last_end_ns_ = 0;
};

}  // namespace

SimulationResult simulate(const SimulatedMachine& machine, SimulatedJob& job,
                          const SimulationOptions& options) {
  return Simulation(machine, job, options).run();
}

}  // namespace heddle::replay
