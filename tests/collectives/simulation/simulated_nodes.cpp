#include "tests/collectives/simulation/simulated_nodes.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"

namespace heddle::testing {
namespace {

constexpr std::chrono::milliseconds clock_step{300};
constexpr std::int32_t clock_jumps_max = 20;
/// A post at a board is seen by those that look behind it; what they do then shows.
constexpr std::int32_t sweeps_in_vain = 3;
/// Nobody writes to most of it.
constexpr std::size_t device_bytes = std::size_t{1} << 30U;

p2p::SimulatedNet::Options net_options(const SimulatedNodes::Options& options,
                                       std::function<void(NodeId)> news) {
  p2p::SimulatedNet::Options net;
  net.window_bytes = options.has_windows ? options.endpoint.window_bytes() : 0;
  net.reads = options.reads;
  for (const collectives::RankPlace& place : options.places) net.hosts.push_back(place.host);
  net.news = std::move(news);
  return net;
}

/// Nodes whose place has the same GPU share it.
DeviceUuid uuid_of(const collectives::RankPlace& place, std::int32_t node, std::int32_t device) {
  const bool is_shared = place.gpu != collectives::RankPlace::no_gpu && device == 0;
  const std::array<std::int32_t, 4> words{place.host,
                                          is_shared ? static_cast<std::int32_t>(place.gpu) : node,
                                          device, is_shared ? 1 : 2};
  DeviceUuid uuid;
  std::memcpy(uuid.bytes.data(), words.data(), sizeof words);
  return uuid;
}

}  // namespace

SimulatedNodes::SimulatedNodes(Options options, std::uint64_t seed, FiberStacks& stacks)
    : options_(std::move(options)),
      random_(seed),
      stacks_(stacks),
      net_(static_cast<std::int32_t>(options_.places.size()), seed + 1,
           net_options(options_, [this](NodeId node) { activate(node.value()); })),
      gpus_(seed + 2, options_.gpus) {
  const auto count = static_cast<std::int32_t>(options_.places.size());
  for (std::int32_t n = 0; n < count; ++n) nodes_.push_back(std::make_unique<Node>());
  for (std::int32_t n = 0; n < count; ++n) make_node(n);
}

void SimulatedNodes::make_node(std::int32_t node) {
  Node& made = at(node);
  const auto index = static_cast<std::size_t>(node);
  std::vector<Device*> devices;
  const std::int32_t devices_count = options_.devices.empty() ? 0 : options_.devices[index];
  for (std::int32_t d = 0; d < devices_count; ++d) {
    made.devices.push_back(
        gpus_.make_device(d, uuid_of(options_.places[index], node, d), device_bytes));
    devices.push_back(made.devices.back().get());
  }
  made.endpoint = std::make_unique<p2p::Endpoint>(
      net_.wire(NodeId{node}), options_.endpoint, [this, node] { activate(node); }, devices);
  made.messages = std::make_shared<UserMessages>(
      *made.endpoint, node, count(), devices, UserMessages::Options{0, true, [this] { wait(); }});
  if (options_.maps_rings_first) made.endpoint->meet_neighbours();
}

/// A test that has failed leaves requests behind.
SimulatedNodes::~SimulatedNodes() {
  for (const auto& node : nodes_) {
    if (node->endpoint == nullptr) continue;
    const bool is_over =
        node->endpoint->is_idle() && (node->devices.empty() || node->endpoint->is_closed());
    if (is_over) continue;
    gpus_.allow_open_memory();
    node->endpoint->abandon(Error(ErrorCode::internal, "the simulation is over"));
  }
}

std::byte* SimulatedNodes::device_memory(std::int32_t node, std::int32_t device,
                                         std::size_t bytes) {
  Node& of = at(node);
  return of.memory.emplace_back(*of.devices[static_cast<std::size_t>(device)], bytes).address();
}

void SimulatedNodes::fail_device(std::int32_t node, std::int32_t device) {
  gpus_.fail_next(*at(node).devices[static_cast<std::size_t>(device)]);
}

collectives::Waiting SimulatedNodes::waiting() {
  return {[this] { wait(); }, [this] { return time_; }};
}

void SimulatedNodes::activate(std::int32_t node) {
  has_changed_ = true;
  Node& one = at(node);
  if (one.is_lost || std::exchange(one.is_active, true)) return;
  active_.push_back(node);
}

// ---- callers ---------------------------------------------------------------------------------

void SimulatedNodes::start(std::int32_t node, std::function<void()> body,
                           std::function<std::string()> told) {
  auto caller = std::make_unique<Caller>();
  caller->node = node;
  caller->told = std::move(told);
  Caller* const added = caller.get();
  caller->fiber = std::make_unique<Fiber>(stacks_, [added, body = std::move(body)] {
    body();
    added->state = Caller::State::over;
  });
  callers_.push_back(std::move(caller));
  at(node).callers.push_back(added);
  ready_.push_back(added);
  has_changed_ = true;
}

void SimulatedNodes::wait() {
  running_->state = Caller::State::waiting;
  running_->fiber->yield();
}

void SimulatedNodes::pause(std::int64_t steps) {
  Caller& own = *running_;
  own.state = Caller::State::paused;
  own.until = steps_ + steps;
  paused_.push_back(&own);
  own.fiber->yield();
}

void SimulatedNodes::rest() {
  Caller& own = *running_;
  own.state = Caller::State::resting;
  own.fiber->yield();
}

void SimulatedNodes::make_ready(Caller& caller) {
  if (caller.state != Caller::State::waiting) return;
  caller.state = Caller::State::ready;
  ready_.push_back(&caller);
}

void SimulatedNodes::wake_paused() {
  std::erase_if(paused_, [this](Caller* caller) {
    if (caller->until > steps_) return false;
    caller->state = Caller::State::ready;
    ready_.push_back(caller);
    return true;
  });
}

void SimulatedNodes::run_caller() {
  Caller*& chosen = ready_[below(ready_.size())];
  running_ = chosen;
  chosen = ready_.back();
  ready_.pop_back();
  running_->fiber->resume();
  running_ = nullptr;
}

// ---- what happens ----------------------------------------------------------------------------

/// By a node's progress thread.
void SimulatedNodes::look() {
  const std::size_t chosen = below(active_.size());
  const std::int32_t number = active_[chosen];
  if (number == options_.slow_node && below(16) != 0) return;
  Node& node = at(number);
  active_[chosen] = active_.back();
  active_.pop_back();
  node.is_active = false;
  if (node.is_lost) return;
  if (!node.ends_soon.empty() && below(3) == 0) {
    net_.leave(NodeId{number});
    node.endpoint->abandon(
        Error(ErrorCode::communication, std::exchange(node.ends_soon, std::string())));
    node.is_lost = true;
  } else {
    if (node.endpoint->progress() || net_.has_news(NodeId{number}) || !node.ends_soon.empty()) {
      activate(number);
    }
    node.messages->free_left_scratch();
  }
  for (Caller* const caller : node.callers) make_ready(*caller);
}

/// Nothing happens unless those who wait find something at a board; or time passes.
SimulatedNodes::Outcome SimulatedNodes::sweep() {
  sweeps_ = std::exchange(has_changed_, false) ? 0 : sweeps_ + 1;
  bool is_over = true;
  for (const auto& caller : callers_) {
    make_ready(*caller);
    is_over = is_over && caller->state == Caller::State::over;
  }
  if (is_over) return Outcome::all_over;
  if (sweeps_ <= sweeps_in_vain) return Outcome::happened;
  bool has_rested = false;
  for (const auto& caller : callers_) {
    if (caller->state != Caller::State::resting) continue;
    caller->state = Caller::State::waiting;
    make_ready(*caller);
    has_rested = true;
  }
  if (has_rested) return Outcome::happened;
  time_ += clock_step;
  sweeps_ = sweeps_in_vain - 1;
  return Outcome::clock_moved;
}

SimulatedNodes::Outcome SimulatedNodes::step() {
  ++steps_;
  wake_paused();
  const bool may_jump = options_.clock_steps > 0 && clock_jumps_ < clock_jumps_max;
  if (may_jump && below(options_.clock_steps) == 0) {
    ++clock_jumps_;
    time_ += clock_step;
  }
  if (below(16) == 0) make_ready(*callers_[below(callers_.size())]);
  const std::array<std::uint32_t, 4> weights{
      ready_.empty() ? 0 : options_.weights[0], active_.empty() ? 0 : options_.weights[1],
      net_.can_step() ? options_.weights[2] : 0, gpus_.can_step() ? options_.weights[3] : 0};
  const std::size_t all = weights[0] + weights[1] + weights[2] + weights[3];
  if (all == 0 && !paused_.empty()) {
    const auto first = std::ranges::min_element(paused_, {}, &Caller::until);
    steps_ = (*first)->until;
    return Outcome::happened;
  }
  if (all == 0) return sweep();
  const std::size_t chosen = below(all);
  if (chosen < weights[0]) {
    run_caller();
  } else if (chosen < weights[0] + weights[1]) {
    look();
  } else if (chosen < weights[0] + weights[1] + weights[2]) {
    net_.step();
  } else {
    gpus_.step();
  }
  return Outcome::happened;
}

void SimulatedNodes::lose(std::int32_t node, bool fails_others) {
  const std::string why = fmt::format("node {} on host {} was lost", node,
                                      options_.places[static_cast<std::size_t>(node)].host);
  net_.lose(NodeId{node});
  gpus_.allow_open_memory();
  at(node).endpoint->abandon(Error(ErrorCode::communication, "this node is lost"));
  at(node).is_lost = true;
  has_lost_ = true;
  for (std::int32_t other = 0; other < count() && fails_others; ++other) {
    if (at(other).is_lost) continue;
    at(other).ends_soon = why;
    activate(other);
  }
  has_changed_ = true;
}

// ---- the end ---------------------------------------------------------------------------------

void SimulatedNodes::settle() {
  while (!active_.empty() || net_.can_step() || gpus_.can_step()) {
    ++steps_;
    if (!active_.empty()) look();
    net_.step();
    gpus_.step();
  }
}

void SimulatedNodes::look_at_all() {
  for (std::int32_t n = 0; n < count(); ++n) activate(n);
}

void SimulatedNodes::close() {
  for (std::int32_t n = 0; n < count(); ++n) {
    if (at(n).is_lost) continue;
    at(n).endpoint->close();
    has_closed_ = true;
    activate(n);
  }
  settle();
}

void SimulatedNodes::drop_remains() {
  for (const auto& node : nodes_) {
    if (node->is_lost) {
      // Its requests have kept what they are of.
      node->endpoint.reset();
    } else {
      node->endpoint->drop_arrivals(UserMessages::first_group_channel);
    }
  }
}

std::string SimulatedNodes::left_behind() {
  std::string left;
  left += gpus_.defects();
  if (net_.defects() > 0) left += fmt::format("{} defects of pieces; ", net_.defects());
  for (std::int32_t n = 0; n < count(); ++n) {
    const Node& node = at(n);
    const auto tell = [&](bool is_left, std::string_view what) {
      if (is_left) left += fmt::format("node {}: {}; ", n, what);
    };
    tell(node.messages->groups() != 0, "groups");
    tell(node.messages->are_moving(), "messages under way");
    tell(!node.messages->is_valid(), "messages that are not valid");
    if (node.endpoint == nullptr) continue;
    tell(!node.endpoint->is_valid(), "an endpoint that is not valid");
    tell(!node.endpoint->is_idle(), "an endpoint with requests or arrivals");
    const bool is_open = has_closed_ && !node.devices.empty() && !node.endpoint->is_closed();
    tell(is_open, "memory that others have open");
  }
  return left;
}

/// As a node's end does.
void SimulatedNodes::end_messages(std::int32_t node) {
  start(
      node,
      [this, node] {
        try {
          at(node).messages->end();
        } catch (const Error&) {
          // A node is lost, this one or another.
          HEDDLE_CHECK(has_lost_, "node {} cannot end its messages", node);
        }
      },
      [] { return std::string("ends its messages"); });
}

std::string SimulatedNodes::callers() const {
  std::string all;
  for (const auto& caller : callers_) {
    if (caller->state == Caller::State::over) continue;
    all += fmt::format("\n  a caller of node {}{}: {}", caller->node,
                       nodes_[static_cast<std::size_t>(caller->node)]->is_lost ? " (lost)" : "",
                       caller->told());
  }
  return all;
}

}  // namespace heddle::testing
