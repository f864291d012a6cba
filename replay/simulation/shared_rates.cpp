#include "replay/simulation/shared_rates.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle::replay {

ResourceId SharedRates::add_resource(double rate) {
  HEDDLE_CHECK(rate > 0, "a resource of rate {}", rate);
  resources_.push_back({rate * 1e-9, rate * 1e-9, never, {}});
  return ResourceId{static_cast<std::int32_t>(resources_.size()) - 1};
}

FlowId SharedRates::begin(std::int64_t now_ns, double amount, ResourceId first, ResourceId second,
                          std::vector<Foreseen>& foreseen) {
  FlowId id{static_cast<std::int32_t>(flows_.size())};
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  at(id) = {
      .uses = {first, second}, .left = std::max(amount, 0.0), .since_ns = now_ns, .end_ns = never};
  add_user(first, id);
  if (second != first) add_user(second, id);
  ++under_way_;
  change_around(now_ns, {first, second}, foreseen);
  return id;
}

void SharedRates::end(std::int64_t now_ns, FlowId flow, std::vector<Foreseen>& foreseen) {
  const std::array<ResourceId, 2> uses = at(flow).uses;
  remove_user(uses[0], flow);
  if (uses[1] != uses[0]) remove_user(uses[1], flow);
  free_.push_back(flow);
  --under_way_;
  change_around(now_ns, uses, foreseen);
}

void SharedRates::fetch(ResourceId id, int round) const {
  const Resource& resource = resources_[static_cast<std::size_t>(id.value())];
  if (round == 0) return __builtin_prefetch(&resource);
  if (round == 1) return __builtin_prefetch(resource.flows.data());
  for (std::size_t i = 0; i < std::min<std::size_t>(4, resource.flows.size()); ++i) {
    const Flow& flow = flows_[static_cast<std::size_t>(resource.flows[i].value())];
    if (round == 2) {
      __builtin_prefetch(&flow);
    } else if (round == 3) {
      for (const ResourceId used : flow.uses) {
        __builtin_prefetch(&resources_[static_cast<std::size_t>(used.value())]);
      }
    }
  }
}

void SharedRates::add_user(ResourceId id, FlowId flow) {
  Resource& resource = at(id);
  resource.flows.push_back(flow);
  resource.part = resource.rate_per_ns / static_cast<double>(resource.flows.size());
}

void SharedRates::remove_user(ResourceId id, FlowId flow) {
  Resource& resource = at(id);
  std::erase(resource.flows, flow);
  const std::size_t left = std::max<std::size_t>(1, resource.flows.size());
  resource.part = resource.rate_per_ns / static_cast<double>(left);
}

/// Updates all flows of a resource after others have begun or ended.
void SharedRates::change_around(std::int64_t now_ns, std::array<ResourceId, 2> uses,
                                std::vector<Foreseen>& foreseen) {
  std::int64_t next_ns = never;
  for (std::size_t i = 0; i < (uses[0] == uses[1] ? 1 : 2); ++i) {
    for (const FlowId id : at(uses.at(i)).flows) {
      Flow& flow = at(id);
      change(now_ns, flow);
      if (flow.uses[0] == uses[0]) {
        next_ns = std::min(next_ns, flow.end_ns);
      } else {
        tell(flow.uses[0], flow.end_ns, foreseen);
      }
    }
  }
  tell(uses[0], next_ns, foreseen);
}

void SharedRates::change(std::int64_t now_ns, Flow& flow) {
  const double rate = std::min(at(flow.uses[0]).part, at(flow.uses[1]).part);
  if (rate == flow.rate) return;  // limited by its other resource
  flow.left = std::max(0.0, flow.left - flow.rate * static_cast<double>(now_ns - flow.since_ns));
  flow.since_ns = now_ns;
  flow.rate = rate;
  const double rest_ns = flow.left / rate;
  const auto whole_ns = static_cast<std::int64_t>(rest_ns);
  flow.end_ns = now_ns + whole_ns + (static_cast<double>(whole_ns) < rest_ns ? 1 : 0);
}

/// A later end is found when the predicted time comes; an earlier one is reported now.
void SharedRates::tell(ResourceId first, std::int64_t end_ns, std::vector<Foreseen>& foreseen) {
  Resource& resource = at(first);
  if (end_ns >= resource.told_ns) return;
  resource.told_ns = end_ns;
  foreseen.push_back({first, end_ns});
}

std::optional<FlowId> SharedRates::comes(const Foreseen& end, std::vector<Foreseen>& foreseen) {
  Resource& resource = at(end.resource);
  if (resource.told_ns != end.end_ns) return std::nullopt;
  resource.told_ns = never;
  std::optional<FlowId> next;
  for (const FlowId id : resource.flows) {
    if (at(id).uses[0] != end.resource) continue;
    if (!next || at(id).end_ns < at(*next).end_ns) next = id;
  }
  if (!next) return std::nullopt;
  if (at(*next).end_ns <= end.end_ns) return next;
  tell(end.resource, at(*next).end_ns, foreseen);
  return std::nullopt;
}

}  // namespace heddle::replay
