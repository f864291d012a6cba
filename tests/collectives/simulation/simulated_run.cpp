#include "tests/collectives/simulation/simulated_run.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "node-runtime/collectives/group_core.hpp"

namespace heddle::testing {
namespace {

SimulatedNodes::Options nodes_options(const Program& program, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto size = [&](std::uint64_t least, std::uint64_t doublings) {
    return static_cast<std::int64_t>(least << below(doublings));
  };
  SimulatedNodes::Options options;
  options.places = program.places;
  options.devices = program.devices;
  options.gpus.refused_mappings = program.refuses_mappings ? 2 : 0;
  options.has_windows = below(2) == 0;
  options.reads = below(2) == 0;
  p2p::EndpointOptions& endpoint = options.endpoint;
  endpoint.eager_bytes_max = size(32, 9);
  endpoint.eager_memory_bytes = 2 * endpoint.eager_bytes_max + size(512, 6);
  endpoint.out_slots = 1 + static_cast<std::int32_t>(below(4));
  endpoint.sizes.pieces_ahead = 1 + static_cast<std::int32_t>(below(3));
  endpoint.in_slots = endpoint.sizes.pieces_ahead + static_cast<std::int32_t>(below(4));
  endpoint.sizes.piece_bytes = size(128, 6);
  endpoint.sizes.read_piece_bytes = size(256, 6);
  endpoint.sizes.shared_piece_bytes_min = size(64, 6);
  endpoint.requests_max = 1 << 16;
  if (!program.devices.empty()) {
    endpoint.sizes.piece_bytes = std::max(endpoint.sizes.piece_bytes, endpoint.eager_bytes_max);
    endpoint.ring_slots = 1 + static_cast<std::int32_t>(below(4));
    endpoint.sizes.ring_slots = endpoint.ring_slots;
    endpoint.sizes.ring_pieces = 1 + static_cast<std::int64_t>(below(8));
    endpoint.sizes.ring_piece_bytes = size(256, 6);
    endpoint.sizes.ring_piece_bytes_min = endpoint.sizes.ring_piece_bytes / 2;
    endpoint.mappings_max = 1 << below(8);
    endpoint.lanes.streams = 1 + static_cast<std::int32_t>(below(3));
    endpoint.lanes.packer = {.cache_bytes = 4096, .chunk_units = 64, .chunks = 2 + below(2)};
    options.maps_rings_first = below(2) == 0;
    if (below(3) == 0) options.gpus.slow_device = static_cast<std::int32_t>(below(4));
  }
  if (below(3) == 0) endpoint.path = below(2) == 0 ? p2p::Path::message : p2p::Path::shared;
  for (std::uint32_t& weight : options.weights) weight = 1U << (2 * below(4));
  if (below(3) == 0) options.slow_node = static_cast<std::int32_t>(below(program.places.size()));
  if (program.fault != Fault::none && below(2) == 0) options.clock_steps = 2000;
  return options;
}

}  // namespace

SimulatedRun::SimulatedRun(std::uint64_t seed, Fault fault, FiberStacks& stacks, bool is_verbose)
    : seed_(seed),
      is_verbose_(is_verbose),
      program_(random_program(seed, fault)),
      random_(seed * 5 + static_cast<std::uint64_t>(fault)),
      nodes_(nodes_options(program_, random_), random_(), stacks) {
  say(program_.describe());
  if (fault == Fault::lost_node) {
    loss_step_ = static_cast<std::int64_t>(random_() % (1U << (4 + random_() % 12)));
    lost_ = static_cast<std::int32_t>(random_() % program_.places.size());
    fails_others_ = random_() % 3 == 0;
    say(fmt::format("  !! node {} is lost in step {}{}\n", lost_, loss_step_,
                    fails_others_ ? "; the others notice and fail" : ""));
  }
  if (fault == Fault::device) {
    loss_step_ = static_cast<std::int64_t>(random_() % (1U << (4 + random_() % 12)));
    lost_ = static_cast<std::int32_t>(random_() % program_.places.size());
    say(fmt::format("  !! a device of node {} fails from step {} on\n", lost_, loss_step_));
  }
}

SimulatedRun::~SimulatedRun() = default;

void SimulatedRun::say(const std::string& line) const {
  if (is_verbose_) fmt::print("{}", line);
}

void SimulatedRun::defect(const std::string& what) {
  say(fmt::format("!!!! {}\n", what));
  if (defects_.size() < 4000) defects_ += what + "\n";
}

// ---- callers ---------------------------------------------------------------------------------

void SimulatedRun::start_lane(std::unique_ptr<Lane> lane, void (SimulatedRun::*body)(Lane&)) {
  Lane* const own = lane.get();
  lanes_.push_back(std::move(lane));
  nodes_.start(
      own->node,
      [this, own, body] {
        try {
          (this->*body)(*own);
        } catch (const std::exception& error) {
          defect(fmt::format("node {}, {}: a caller ends with: {}", own->node, own->doing,
                             error.what()));
        }
        own->under_way.clear();
        own->groups.clear();
      },
      [own] { return own->doing; });
}

Group SimulatedRun::make_world(std::int32_t node) {
  using collectives::GroupCore;
  const auto& messages = nodes_.messages(node);
  GroupCore::Options options{{},
                             collectives::Rank{node},
                             collectives::Places(program_.places),
                             p2p::ChannelId{messages->next_channel()},
                             program_.rates,
                             patience,
                             0,
                             0,
                             nodes_.waiting()};
  for (std::int32_t n = 0; n < nodes_.count(); ++n) options.nodes.emplace_back(n);
  messages->take_channels(options.channel.value() + 1);
  auto core = GroupCore::make(messages, std::move(options));
  if (program_.have_devices) core->set_have_devices();
  core->set_up_board();
  return Group(core);
}

/// The first caller of a node makes its groups, and starts the others.
void SimulatedRun::make_groups(Lane& first) {
  const std::int32_t node = first.node;
  std::map<std::int32_t, Group> made;
  first.doing = "makes groups";
  try {
    made.emplace(0, make_world(node));
    for (const Making& making : program_.makings) {
      const auto parent = made.find(making.parent);
      if (parent == made.end()) continue;
      come_late(first);
      const Group& of = parent->second;
      const auto rank = static_cast<std::size_t>(of.rank());
      const Group got = making.is_split ? of.split(making.colors[rank], making.keys[rank])
                                        : of.subset(making.ranks);
      std::int32_t number = -1;
      for (const std::int32_t group : making.groups) {
        if (group >= 0 && program_.group(group).rank_of(node) >= 0) number = group;
      }
      const std::int32_t expected = number < 0 ? -1 : program_.group(number).rank_of(node);
      if ((got.is_member() ? got.rank() : -1) != expected) {
        defect(fmt::format("node {} has another rank in group {}", node, number));
      } else if (number >= 0) {
        made.emplace(number, got);
      }
    }
  } catch (const Error& error) {
    --making_;
    is_all_made_ = false;
    if (program_.fault != Fault::lost_node) throw;
    say(fmt::format("node {} makes no groups: {}\n", node, error.what()));
    return;
  }
  --making_;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::int32_t l = 0; l < program_.lanes; ++l) {
    auto lane = std::make_unique<Lane>();
    lane->node = node;
    lane->number = l;
    lane->random.seed(seed_ * 1000 + static_cast<std::uint64_t>(node * 8 + l));
    for (const auto& [number, group] : made) {
      if (program_.group(number).lane == l) lane->groups.emplace(number, group);
    }
    lanes.push_back(std::move(lane));
  }
  made.clear();
  for (auto& lane : lanes) start_lane(std::move(lane), &SimulatedRun::run_lane);
}

void SimulatedRun::come_late(Lane& lane) {
  if (program_.lateness == 0 || lane.random() % 4 != 0) return;
  nodes_.pause(static_cast<std::int64_t>(lane.random() % program_.lateness));
}

void SimulatedRun::run_lane(Lane& lane) {
  // A group that fails while others are made of it is not what is looked at here.
  const bool waits = program_.fault == Fault::wrong_call || program_.fault == Fault::misfit;
  lane.doing = "waits until all groups are made";
  while (waits && making_ > 0) nodes_.pause(16);
  for (const Action& action : program_.actions) {
    if (!lane.groups.contains(action.group)) continue;
    come_late(lane);
    run_action(lane, action);
    nodes_.got_on();
    while (!lane.under_way.empty() && lane.random() % 3 == 0) {
      wait_for(lane, lane.random() % lane.under_way.size());
    }
  }
  while (!lane.under_way.empty()) wait_for(lane, lane.random() % lane.under_way.size());
  for (const auto& [group, handle] : lane.groups) end_group(lane, group, handle);
  lane.doing = "is over";
}

void SimulatedRun::run_action(Lane& lane, const Action& action) {
  const GroupPlan& plan = program_.group(action.group);
  const Member& own = member(action.group, lane.node);
  if (own.failure && !own.is_refused) return;
  const auto of_group = [&](const UnderWay& one) { return one.action->group == action.group; };
  while (std::ranges::count_if(lane.under_way, of_group) >= program_.under_way_max) {
    const auto first = std::ranges::find_if(lane.under_way, of_group);
    wait_for(lane, static_cast<std::size_t>(first - lane.under_way.begin()));
  }
  const std::int32_t rank = plan.rank_of(lane.node);
  const bool is_fault = action.number == program_.fault_action && rank == program_.fault_rank;
  const Action& called = is_fault ? program_.fault_call : action;
  std::unique_ptr<Part> part = make_part(called, rank, static_cast<std::int32_t>(plan.nodes.size()),
                                         lane.random(), references_, room_for(lane, called));
  lane.doing = called.describe();
  say(fmt::format("[{}] node {} calls {}\n", nodes_.steps(), lane.node, lane.doing));
  try {
    const std::optional<Collective> begun = part->call(lane.groups.at(action.group));
    if (begun) {
      lane.under_way.push_back({&action, std::move(part), *begun});
    } else {
      ended_well(lane, action, *part);
    }
  } catch (const Error& error) {
    failed(lane, action.group, &action, error);
  }
}

/// Where the caller has an action's elements: one piece here, the next one there.
DeviceRoom SimulatedRun::room_for(Lane& lane, const Action& action) {
  const std::int32_t devices = nodes_.devices(lane.node);
  if (devices == 0 || action.home == Home::hosts) return nullptr;
  return [this, &lane, devices, home = action.home](std::size_t bytes) -> std::byte* {
    if (home == Home::any && lane.random() % 2 == 0) return nullptr;
    const auto device = static_cast<std::int32_t>(lane.random() % static_cast<unsigned>(devices));
    return nodes_.device_memory(lane.node, device, bytes);
  };
}

void SimulatedRun::wait_for(Lane& lane, std::size_t place) {
  UnderWay one = std::move(lane.under_way[place]);
  lane.under_way.erase(lane.under_way.begin() + static_cast<std::ptrdiff_t>(place));
  lane.doing = "waits for " + one.action->describe();
  try {
    one.collective.wait();
    ended_well(lane, *one.action, *one.part);
  } catch (const Error& error) {
    failed(lane, one.action->group, one.action, error);
  }
  nodes_.got_on();
}

/// A barrier when nothing is under way any more: whoever has not heard yet hears now.
void SimulatedRun::end_group(Lane& lane, std::int32_t group, const Group& handle) {
  Member& own = member(group, lane.node);
  lane.doing = fmt::format("the last barriers of group {}", group);
  try {
    handle.barrier();
    nodes_.got_on();
    if (program_.fault != Fault::none) nodes_.rest();
    own.ends = true;
    handle.barrier();
    own.goes_on = true;
  } catch (const Error& error) {
    failed(lane, group, nullptr, error);
  }
  own.ends = true;
  nodes_.got_on();
}

void SimulatedRun::ended_well(const Lane& lane, const Action& action, const Part& part) {
  say(fmt::format("[{}] node {} has done {}\n", nodes_.steps(), lane.node, action.describe()));
  if (action.number == program_.fault_action) {
    member(action.group, lane.node).has_done_fault = true;
    return;
  }
  const std::string wrong = part.difference();
  if (!wrong.empty()) {
    defect(fmt::format("node {}, rank {}, {}: {}", lane.node,
                       program_.group(action.group).rank_of(lane.node), action.describe(), wrong));
  }
}

void SimulatedRun::failed(const Lane& lane, std::int32_t group, const Action* action,
                          const Error& error) {
  say(fmt::format("[{}] node {}, {}, hears: {}\n", nodes_.steps(), lane.node, lane.doing,
                  error.what()));
  Member& own = member(group, lane.node);
  const bool is_first = !own.failure.has_value();
  // What others hear, it hears again.
  own.is_refused = is_first && program_.fault == Fault::wrong_call && action != nullptr &&
                   action->number == program_.fault_action;
  if (is_first) own.failure = error;
}

}  // namespace heddle::testing
