#include "replay/simulation/shared_rates.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle::replay {

ResourceId SharedRates::add_resource(double rate) {
  HEDDLE_CHECK(rate > 0, "a resource of rate {}", rate);
  resources_.push_back({rate * 1e-9, rate * 1e-9, never, 0, {}});
  return ResourceId{static_cast<std::int32_t>(resources_.size()) - 1};
}

FlowId SharedRates::begin(std::int64_t now_ns, double amount, ResourceId first, ResourceId second,
                          std::vector<Foreseen>& foreseen) {
  FlowId id{static_cast<std::int32_t>(flows_.size())};
  if (free_flows_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_flows_.back();
    free_flows_.pop_back();
  }
  const BundleId bundle_id = bundle_of(now_ns, first, second);
  flows_[static_cast<std::size_t>(id.value())] = bundle_id;
  Bundle& bundle = at(bundle_id);
  serve(now_ns, bundle);
  bundle.members.push_back({bundle.served + std::max(amount, 0.0), begun_++, id});
  std::ranges::push_heap(bundle.members, is_later);
  add_users(first, 1);
  if (second != first) add_users(second, 1);
  ++under_way_;
  change_around(now_ns, {first, second}, foreseen);
  return id;
}

void SharedRates::end(std::int64_t now_ns, FlowId flow, std::vector<Foreseen>& foreseen) {
  const BundleId bundle_id = flows_[static_cast<std::size_t>(flow.value())];
  Bundle& bundle = at(bundle_id);
  HEDDLE_CHECK(bundle.members.front().flow == flow, "flow {} ends before flow {}", flow.value(),
               bundle.members.front().flow.value());
  const std::array<ResourceId, 2> uses = bundle.uses;
  std::ranges::pop_heap(bundle.members, is_later);
  bundle.members.pop_back();
  const bool is_last = bundle.members.empty();
  add_users(uses[0], -1);
  if (uses[1] != uses[0]) add_users(uses[1], -1);
  if (is_last) {
    for (const ResourceId used : uses) std::erase(at(used).bundles, bundle_id);
    free_bundles_.push_back(bundle_id);
  }
  free_flows_.push_back(flow);
  --under_way_;
  change_around(now_ns, uses, foreseen);
}

void SharedRates::fetch(ResourceId id, int round) const {
  const Resource& resource = resources_[static_cast<std::size_t>(id.value())];
  if (round == 0) return __builtin_prefetch(&resource);
  if (round == 1) return __builtin_prefetch(resource.bundles.data());
  for (std::size_t i = 0; i < std::min<std::size_t>(4, resource.bundles.size()); ++i) {
    const Bundle& bundle = bundles_[static_cast<std::size_t>(resource.bundles[i].value())];
    if (round == 2) {
      __builtin_prefetch(&bundle);
    } else if (round == 3) {
      __builtin_prefetch(bundle.members.data());
      for (const ResourceId used : bundle.uses) {
        __builtin_prefetch(&resources_[static_cast<std::size_t>(used.value())]);
      }
    }
  }
}

/// The bundle of flows between two resources, a new one if there are none. Flows of one resource
/// are few, and have a bundle each.
SharedRates::BundleId SharedRates::bundle_of(std::int64_t now_ns, ResourceId first,
                                             ResourceId second) {
  if (first != second) {
    for (const BundleId id : at(first).bundles) {
      if (at(id).uses == std::array{first, second}) return id;
    }
  }
  BundleId id{static_cast<std::int32_t>(bundles_.size())};
  if (free_bundles_.empty()) {
    bundles_.emplace_back();
  } else {
    id = free_bundles_.back();
    free_bundles_.pop_back();
  }
  Bundle& bundle = at(id);
  bundle.uses = {first, second};
  bundle.rate = bundle.served = 0;
  bundle.since_ns = now_ns;
  bundle.end_ns = never;
  at(first).bundles.push_back(id);
  if (second != first) at(second).bundles.push_back(id);
  return id;
}

void SharedRates::add_users(ResourceId id, std::int32_t count) {
  Resource& resource = at(id);
  resource.users += count;
  resource.part = resource.rate_per_ns / static_cast<double>(std::max(1, resource.users));
}

/// Advances a bundle to now. A member alone counts from 0 again: nothing is lost to rounding.
void SharedRates::serve(std::int64_t now_ns, Bundle& bundle) {
  bundle.served += bundle.rate * static_cast<double>(now_ns - bundle.since_ns);
  bundle.since_ns = now_ns;
  if (bundle.members.size() != 1) return;
  Member& only = bundle.members.front();
  only.until = std::max(0.0, only.until - bundle.served);
  bundle.served = 0;
}

/// Updates all bundles of two resources after a flow between them has begun or ended.
void SharedRates::change_around(std::int64_t now_ns, std::array<ResourceId, 2> uses,
                                std::vector<Foreseen>& foreseen) {
  std::int64_t next_ns = never;
  for (std::size_t i = 0; i < (uses[0] == uses[1] ? 1 : 2); ++i) {
    for (const BundleId id : at(uses.at(i)).bundles) {
      Bundle& bundle = at(id);
      change(now_ns, bundle);
      if (bundle.uses[0] == uses[0]) {
        next_ns = std::min(next_ns, bundle.end_ns);
      } else {
        tell(bundle.uses[0], bundle.end_ns, foreseen);
      }
    }
  }
  tell(uses[0], next_ns, foreseen);
}

/// The rate of a bundle that a flow has joined or left is always another one: its first end is
/// predicted again.
void SharedRates::change(std::int64_t now_ns, Bundle& bundle) {
  const double rate = std::min(at(bundle.uses[0]).part, at(bundle.uses[1]).part);
  if (rate == bundle.rate) return;  // limited by its other resource
  serve(now_ns, bundle);
  bundle.rate = rate;
  const double rest_ns = std::max(0.0, bundle.members.front().until - bundle.served) / rate;
  const auto whole_ns = static_cast<std::int64_t>(rest_ns);
  bundle.end_ns = now_ns + whole_ns + (static_cast<double>(whole_ns) < rest_ns ? 1 : 0);
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
  const Bundle* next = nullptr;
  for (const BundleId id : resource.bundles) {
    const Bundle& bundle = at(id);
    if (bundle.uses[0] != end.resource) continue;
    if (next == nullptr || bundle.end_ns < next->end_ns) next = &bundle;
  }
  if (next == nullptr) return std::nullopt;
  if (next->end_ns <= end.end_ns) return next->members.front().flow;
  tell(end.resource, next->end_ns, foreseen);
  return std::nullopt;
}

}  // namespace heddle::replay
