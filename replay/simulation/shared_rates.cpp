#include "replay/simulation/shared_rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

namespace heddle::replay {

ResourceId SharedRates::add_resource(double rate) {
  HEDDLE_CHECK(rate > 0, "a resource of rate {}", rate);
  resources_.push_back({rate * 1e-9, {}});
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
  Flow& flow = at(id);
  flow = {.uses = {first, second},
          .use_count = first == second ? 1 : 2,
          .left = std::max(amount, 0.0),
          .since_ns = now_ns,
          .told_ns = std::numeric_limits<std::int64_t>::max(),
          .use = flow.use + 1};
  for (std::int32_t i = 0; i < flow.use_count; ++i) {
    at(flow.uses[static_cast<std::size_t>(i)]).flows.push_back(id);
  }
  ++under_way_;
  change_all(now_ns, flow, id, foreseen);
  change(now_ns, id, foreseen);
  return id;
}

void SharedRates::end(std::int64_t now_ns, FlowId flow, std::vector<Foreseen>& foreseen) {
  const Flow ended = at(flow);
  for (std::int32_t i = 0; i < ended.use_count; ++i) {
    std::erase(at(ended.uses[static_cast<std::size_t>(i)]).flows, flow);
  }
  ++at(flow).use;
  free_.push_back(flow);
  --under_way_;
  change_all(now_ns, ended, flow, foreseen);
}

/// All that share a resource with `around`, but for one.
void SharedRates::change_all(std::int64_t now_ns, const Flow& around, FlowId but,
                             std::vector<Foreseen>& foreseen) {
  const std::array<ResourceId, 2> uses = around.uses;
  for (std::int32_t i = 0; i < around.use_count; ++i) {
    for (const FlowId other : at(uses[static_cast<std::size_t>(i)]).flows) {
      if (other != but) change(now_ns, other, foreseen);
    }
  }
}

/// A flow that ends later than was foreseen is found to when that time has come; one that ends
/// earlier is told of now.
void SharedRates::change(std::int64_t now_ns, FlowId id, std::vector<Foreseen>& foreseen) {
  Flow& flow = at(id);
  flow.left = std::max(0.0, flow.left - flow.rate * static_cast<double>(now_ns - flow.since_ns));
  flow.since_ns = now_ns;
  double rate = 0;
  for (std::int32_t i = 0; i < flow.use_count; ++i) {
    const Resource& used = at(flow.uses[static_cast<std::size_t>(i)]);
    const double part = used.rate_per_ns / static_cast<double>(used.flows.size());
    rate = i == 0 ? part : std::min(rate, part);
  }
  flow.rate = rate;
  flow.end_ns = now_ns + std::llround(std::ceil(flow.left / rate));
  if (flow.end_ns >= flow.told_ns) return;
  flow.told_ns = flow.end_ns;
  foreseen.push_back({id, flow.use, flow.end_ns});
}

bool SharedRates::comes(const Foreseen& end, std::vector<Foreseen>& foreseen) {
  Flow& flow = at(end.flow);
  if (flow.use != end.use || flow.told_ns != end.end_ns) return false;
  if (flow.end_ns == end.end_ns) return true;
  flow.told_ns = flow.end_ns;
  foreseen.push_back({end.flow, flow.use, flow.end_ns});
  return false;
}

}  // namespace heddle::replay
