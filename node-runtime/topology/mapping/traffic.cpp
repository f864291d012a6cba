#include "node-runtime/topology/mapping/traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "base/require.hpp"

namespace heddle {
namespace {

bool is_amount(double value) {
  return std::isfinite(value) && value >= 0;
}

bool is_valid_flow(const Flow& flow) {
  return is_amount(flow.bytes) && is_amount(flow.messages);
}

std::array<const Flow*, 4> outer_flows(const SlotTraffic& slot) {
  return {&slot.from_host, &slot.to_host, &slot.from_network, &slot.to_network};
}

std::vector<SlotTraffic> single_devices(std::int32_t slots) {
  require(slots >= 1, "traffic: it has {} slots; at least 1 is needed", slots);
  std::vector<SlotTraffic> all(static_cast<std::size_t>(slots));
  for (std::int32_t s = 0; s < slots; ++s) all[static_cast<std::size_t>(s)].node = s;
  return all;
}

}  // namespace

Flow& Flow::operator+=(const Flow& more) {
  bytes += more.bytes;
  messages += more.messages;
  return *this;
}

Traffic::Traffic(std::int32_t slots, std::string name)
    : Traffic(single_devices(slots), std::move(name)) {}

Traffic::Traffic(std::vector<SlotTraffic> slots, std::string name)
    : name_(std::move(name)), slots_(std::move(slots)), flows_(slots_.size() * slots_.size()) {
  require(!slots_.empty(), "traffic: it has no slots; at least 1 is needed");
  std::set<std::pair<std::int32_t, std::int32_t>> devices;
  for (const SlotTraffic& one : slots_) {
    require(devices.insert({one.node, one.device}).second,
            "traffic: device {} of node {} is there twice; give each one slot", one.device,
            one.node);
    for (const Flow* flow : outer_flows(one)) {
      require(is_valid_flow(*flow),
              "traffic: device {} of node {} has {} bytes in {} messages from or to host memory or "
              "other hosts; neither may be negative",
              one.device, one.node, flow->bytes, flow->messages);
    }
  }
}

std::size_t Traffic::at(SlotId from, SlotId to) const {
  for (const SlotId slot : {from, to}) {
    require(slot.value() >= 0 && slot.value() < slots(),
            "traffic: there is no slot {}; they are 0 to {}", slot.value(), slots() - 1);
  }
  return static_cast<std::size_t>(from.value()) * slots_.size() +
         static_cast<std::size_t>(to.value());
}

const SlotTraffic& Traffic::slot(SlotId slot) const {
  return slots_[at(SlotId{0}, slot)];
}
SlotTraffic& Traffic::slot(SlotId slot) {
  return slots_[at(SlotId{0}, slot)];
}
const Flow& Traffic::flow(SlotId from, SlotId to) const {
  return flows_[at(from, to)];
}

void Traffic::add(SlotId from, SlotId to, const Flow& flow) {
  Flow& known = flows_[at(from, to)];
  require(from != to, "traffic: slot {} would send to itself; name two", from.value());
  require(is_valid_flow(flow),
          "traffic: slot {} sends {} bytes in {} messages to slot {}; neither may be negative",
          from.value(), flow.bytes, flow.messages, to.value());
  known += flow;
}

bool Traffic::has_counts() const {
  const auto is_counted = [](const Flow& flow) { return flow.bytes == 0 || flow.messages > 0; };
  return !is_empty() && std::ranges::all_of(flows_, is_counted) &&
         std::ranges::all_of(slots_, [&](const SlotTraffic& one) {
           return std::ranges::all_of(outer_flows(one),
                                      [&](const Flow* flow) { return is_counted(*flow); });
         });
}

bool Traffic::is_empty() const {
  return std::ranges::all_of(flows_, [](const Flow& flow) { return flow == Flow{}; }) &&
         std::ranges::all_of(slots_, [](const SlotTraffic& one) {
           return std::ranges::all_of(outer_flows(one),
                                      [](const Flow* flow) { return *flow == Flow{}; });
         });
}

bool Traffic::is_valid() const {
  if (slots_.empty() || flows_.size() != slots_.size() * slots_.size()) return false;
  std::set<std::pair<std::int32_t, std::int32_t>> devices;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (!devices.insert({slots_[s].node, slots_[s].device}).second) return false;
    if (!(flows_[s * slots_.size() + s] == Flow{})) return false;
    for (const Flow* flow : outer_flows(slots_[s])) {
      if (!is_valid_flow(*flow)) return false;
    }
  }
  return std::ranges::all_of(flows_, is_valid_flow);
}

}  // namespace heddle
