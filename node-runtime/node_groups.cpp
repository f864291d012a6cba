/// The group of all nodes, and the operations of Node itself.

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fmt/core.h>
#include <limits>
#include <tuple>
#include <utility>

#include "base/require.hpp"
#include "config/words.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/group_core.hpp"
#include "node-runtime/device_rates.hpp"
#include "node-runtime/measured_copies.hpp"
#include "node-runtime/node_parts.hpp"
#include "node-runtime/path_rates.hpp"
#include "node-runtime/transport/p2p/endpoint_options.hpp"

namespace heddle {
namespace {

using collectives::CollectiveRates;
using collectives::GroupCore;
using collectives::Level;
using collectives::LevelRates;

/// Messages of host memory by their rates: short ones are eager, of longer ones the receiver hears,
/// asks and is told of the end.
CollectiveRates collective_rates(const p2p::PathRates& paths,
                                 const collectives::DeviceRates& devices) {
  constexpr double micro = 1e-6;
  constexpr double giga = 1e9;
  constexpr double notes = 3;
  const auto eager = p2p::EndpointOptions{}.eager_bytes_max;
  CollectiveRates rates;
  const LevelRates host{paths.note_us * micro, paths.host * giga, eager,
                        (notes * paths.note_us + paths.read_us) * micro, paths.read * giga};
  rates.levels.fill(host);
  rates.levels[static_cast<std::size_t>(Level::network)] = {
      paths.message_us * micro, paths.message * giga, eager, notes * paths.message_us * micro,
      paths.message * giga};
  rates.reduced_bytes_per_s = paths.host * giga;
  rates.devices = devices;
  return rates;
}

/// How often a thread that waits at a board looks, alone and letting others run, before it sleeps:
/// as little alone as is worth it where threads share cores.
std::pair<std::int32_t, std::int32_t> patience_of(config::Wait wait, bool is_oversubscribed) {
  constexpr std::int32_t many = std::numeric_limits<std::int32_t>::max();
  switch (wait) {
    case config::Wait::spin:
      return {many, 0};
    case config::Wait::park:
      return {0, 0};
    case config::Wait::adaptive:
      break;
  }
  return {is_oversubscribed ? 400 : 4000, 1000};
}

Copies copies_of(std::optional<config::BufferCopies> wanted) {
  if (!wanted) return Copies::automatic;
  switch (*wanted) {
    case config::BufferCopies::by_table:
      return Copies::by_table;
    case config::BufferCopies::dynamic:
      return Copies::by_speed;
    case config::BufferCopies::mapped:
      return Copies::mapped;
    case config::BufferCopies::staged:
      return Copies::staged;
  }
  return Copies::automatic;
}

/// What calls take that do not say otherwise.
CollectiveOptions default_options(const config::Collectives& wanted) {
  CollectiveOptions defaults;
  defaults.order = wanted.order == config::ReductionOrder::places ? Order::places : Order::ranks;
  if (wanted.algorithm) defaults.algorithm = name_of(*wanted.algorithm);
  defaults.copies = copies_of(wanted.copies);
  defaults.fragment_bytes = static_cast<std::int64_t>(wanted.fragment.value_or(0));
  return defaults;
}

/// Options of a group of all nodes. Algorithms are chosen by node 0's rates, which all nodes have.
GroupCore::Options options_of_all(const NodeFacts& facts, const config::Devices& devices,
                                  collectives::Places places, p2p::ChannelId channel) {
  const p2p::PathRates paths = path_rates(facts.tuning.measured);
  GroupCore::Options options{{},
                             collectives::Rank{facts.rank},
                             std::move(places),
                             channel,
                             collective_rates(paths, device_rates(facts, devices, paths))};
  for (std::int32_t r = 0; r < facts.nodes; ++r) options.nodes.emplace_back(r);
  return options;
}

ReduceOperation operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      break;
    case Reduction::maximum:
      return ReduceOperation::maximum();
    case Reduction::minimum:
      return ReduceOperation::minimum();
  }
  return ReduceOperation::sum();
}

}  // namespace

// ---- the operations of Node ------------------------------------------------------------------

/// Options of a program's groups do not count: results of Node's operations stay the same. There is
/// no watchdog, and a thread soon sleeps, whatever runtime.wait says: other nodes may compute for
/// long before they come. It does not let others run between looks instead: these would keep the
/// core for milliseconds, which a thread that is woken takes at once.
std::shared_ptr<GroupCore> Node::Parts::make_own_group() {
  // They are on hosts' memory: who shares a GPU does not matter.
  GroupCore::Options options = options_of_all(
      facts, config.runtime.devices,
      collectives::places_on_hosts(communicator.hosts(), facts.nodes), UserMessages::node_channel);
  if (config.runtime.wait != config::Wait::park) options.looks = facts.oversubscribed ? 100 : 4000;
  options.patience = std::chrono::years(10);
  options.is_counted = false;
  auto core = GroupCore::make(user_messages(), std::move(options));
  core->set_up_board();
  return core;
}

/// Does `operation` on the group of all nodes; where the node has failed, throws why.
void Node::Parts::act_together(const std::function<void(const Group&)>& operation) {
  if (facts.nodes == 1) return;
  const std::unique_lock turn(own_operation_mutex, std::try_to_lock);
  require(turn.owns_lock(),
          "Node: two threads reduce at the same time; one thread at a time calls collectives");
  const auto throw_failure = [this] {
    if (engine->failed()) throw Error(*engine->failure());
  };
  throw_failure();
  require(!engine->stopping(), "Node: a collective was called after Node::stop()");
  try {
    if (own_group == nullptr) own_group = make_own_group();
    operation(Group(own_group));
  } catch (const Error&) {
    throw_failure();  // messages and other members know less of it
    throw;
  }
}

void Node::Parts::all_reduce(std::span<double> values, Reduction reduction) {
  act_together([&](const Group& all) {
    const auto count = static_cast<std::int64_t>(values.size());
    all.all_reduce(Incoming{values.data(), count, Scalar::float64}, operation_of(reduction));
    // What is not a number has the same bits on all nodes, too.
    for (double& value : values) {
      if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
    }
  });
}

void Node::Parts::barrier() {
  act_together([](const Group& all) { all.barrier(); });
}

// ---- groups of programs ----------------------------------------------------------------------

std::shared_ptr<GroupCore> Node::Parts::make_world() {
  const auto messages = user_messages();
  GroupCore::Options options =
      options_of_all(facts, config.runtime.devices,
                     places ? *places : collectives::Places({collectives::RankPlace{}}),
                     p2p::ChannelId{messages->next_channel()});
  std::tie(options.looks, options.yields) = patience_of(config.runtime.wait, facts.oversubscribed);
  options.patience =
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * config.runtime.watchdog_seconds));
  options.defaults = default_options(config.runtime.collectives);
  options.copies = measured_copies(facts.tuning.measured);
  messages->take_channels(options.channel.value() + 1);
  auto core = GroupCore::make(messages, std::move(options));
  std::int8_t has_devices = facts.devices > 0 && messages->takes_device_memory() ? 1 : 0;
  Group(core).all_reduce(Incoming{&has_devices, 1, Scalar::int8}, ReduceOperation::minimum(),
                         {.name = "devices of the group of all nodes"});
  if (has_devices != 0) core->set_have_devices();
  core->set_up_board();
  if (recorder.enabled()) {
    group_trace = std::make_shared<collectives::OperationTrace>(recorder);
    core->set_trace(group_trace);
  }
  if (config.runtime.collectives.explain && facts.rank == 0) {
    core->set_explanations(std::make_shared<collectives::Explanations>(
        [](const std::string& text) { fmt::print(stderr, "heddle: {}\n", text); }));
  }
  return core;
}

Group Node::group() {
  if (parts_->world == nullptr) parts_->world = parts_->make_world();
  return Group(parts_->world);
}

}  // namespace heddle
