#include "node-runtime/collectives/driven_world.hpp"

#include <sched.h>
#include <utility>
#include <vector>

#include "node-runtime/collectives/group_core.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle {
namespace {

collectives::Places apart(std::int32_t nodes) {
  std::vector<collectives::RankPlace> places(static_cast<std::size_t>(nodes));
  for (std::int32_t r = 0; r < nodes; ++r) places[static_cast<std::size_t>(r)].host = r;
  return collectives::Places(std::move(places));
}

}  // namespace

DrivenWorld::DrivenWorld(p2p::Endpoint& endpoint, std::int32_t own, std::int32_t nodes,
                         Options options)
    : endpoint_(endpoint),
      messages_(
          std::make_shared<UserMessages>(endpoint, own, nodes, std::span<Device* const>(),
                                         UserMessages::Options{0, false, [this] { drive(); }})) {
  collectives::GroupCore::Options wanted{{},
                                         collectives::Rank{own},
                                         options.places ? *options.places : apart(nodes),
                                         p2p::ChannelId{messages_->next_channel()},
                                         options.rates,
                                         options.patience,
                                         options.looks,
                                         options.yields};
  wanted.defaults = options.defaults;
  for (std::int32_t r = 0; r < nodes; ++r) wanted.nodes.emplace_back(r);
  messages_->take_channels(wanted.channel.value() + 1);
  world_ = collectives::GroupCore::make(messages_, std::move(wanted));
  world_->set_up_board();
}

DrivenWorld::~DrivenWorld() = default;

void DrivenWorld::drive() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && endpoint_.progress()) return;
  ::sched_yield();
}

void DrivenWorld::end() {
  messages_->end();
  const std::scoped_lock lock(mutex_);
  // What was on its way to groups that have failed.
  endpoint_.drop_arrivals(UserMessages::channel);
}

}  // namespace heddle
