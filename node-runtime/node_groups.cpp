/// The group of all nodes.

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "config/words.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/group_core.hpp"
#include "node-runtime/node_parts.hpp"
#include "node-runtime/path_rates.hpp"
#include "node-runtime/transport/p2p/endpoint_options.hpp"

namespace heddle {
namespace {

using collectives::CollectiveRates;
using collectives::GroupCore;
using collectives::Level;
using collectives::LevelRates;
using collectives::RankPlace;

/// Messages of host memory by their rates: short ones are eager, of longer ones the receiver hears,
/// asks and is told of the end.
CollectiveRates collective_rates(const p2p::PathRates& paths) {
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
  return rates;
}

/// Ranks of one host have one number. Host memory alone: who shares a GPU does not matter.
collectives::Places places_of(const std::vector<std::string>& hosts, std::int32_t size) {
  std::map<std::string, std::int32_t> numbers;
  std::vector<RankPlace> places(static_cast<std::size_t>(size));
  for (std::size_t r = 0; r < hosts.size() && r < places.size(); ++r) {
    places[r].host =
        numbers.try_emplace(hosts[r], static_cast<std::int32_t>(numbers.size())).first->second;
  }
  return collectives::Places(std::move(places));
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

}  // namespace

std::shared_ptr<GroupCore> Node::Parts::make_world() {
  const auto messages = user_messages();
  GroupCore::Options options{{},
                             collectives::Rank{facts.rank},
                             places_of(communicator.hosts(), facts.nodes),
                             p2p::ChannelId{messages->next_channel()},
                             {},
                             {}};
  std::tie(options.looks, options.yields) = patience_of(config.runtime.wait, facts.oversubscribed);
  for (std::int32_t r = 0; r < facts.nodes; ++r) options.nodes.emplace_back(r);
  options.patience =
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * config.runtime.watchdog_seconds));
  options.defaults = default_options(config.runtime.collectives);
  messages->take_channels(options.channel.value() + 1);
  auto core = GroupCore::make(messages, std::move(options));
  // Algorithms are chosen by node 0's rates: all nodes must choose alike.
  CollectiveRates rates = collective_rates(path_rates(facts.tuning.measured));
  Group(core).broadcast({&rates, sizeof rates}, 0, {.name = "rates of the group of all nodes"});
  core->set_rates(rates);
  std::int8_t has_devices = facts.devices > 0 && messages->takes_device_memory() ? 1 : 0;
  Group(core).all_reduce(Incoming{&has_devices, 1, Scalar::int8}, ReduceOperation::minimum(),
                         {.name = "devices of the group of all nodes"});
  if (has_devices != 0) core->set_have_devices();
  core->set_up_board();
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
