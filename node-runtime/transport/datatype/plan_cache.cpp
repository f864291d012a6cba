#include "node-runtime/transport/datatype/plan_cache.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace heddle {

std::size_t PlanCache::bytes_of(const PackPlan& plan) {
  return sizeof(PackPlan) + plan.units.size() * sizeof(WorkUnit);
}

std::shared_ptr<const PackPlan> PlanCache::commit(const Datatype& type) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = by_identity_.find(type.identity()); known != by_identity_.end()) {
      ++statistics_.found;
      entries_.splice(entries_.begin(), entries_, known->second);
      return entries_.front().plan;
    }
  }
  // Without the lock: a long plan must not hold up other threads.
  auto made = std::make_shared<const PackPlan>(make_plan(type));
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<const PackPlan> plan = shared(std::move(made));
  keep(type, plan);
  HEDDLE_EXPENSIVE(holds_invariant());
  return plan;
}

/// The plan itself, or an equal one that exists already.
std::shared_ptr<const PackPlan> PlanCache::shared(std::shared_ptr<const PackPlan> plan) {
  const std::size_t hash = plan->hash();
  auto [place, end] = by_content_.equal_range(hash);
  while (place != end) {
    std::shared_ptr<const PackPlan> other = place->second.lock();
    if (other == nullptr) {
      place = by_content_.erase(place);
    } else if (*other == *plan) {
      ++statistics_.shared;
      return other;
    } else {
      ++place;
    }
  }
  ++statistics_.made;
  by_content_.emplace(hash, plan);
  return plan;
}

void PlanCache::keep(const Datatype& type, const std::shared_ptr<const PackPlan>& plan) {
  // Another thread may have committed the same type meanwhile.
  const bool is_known = by_identity_.contains(type.identity());
  if (is_known || options_.entries_max == 0 || bytes_of(*plan) > options_.bytes_max) return;
  while (entries_.size() >= options_.entries_max || bytes_ + bytes_of(*plan) > options_.bytes_max) {
    forget_least_recent();
  }
  bytes_ += bytes_of(*plan);
  entries_.push_front({type, plan});
  by_identity_.emplace(type.identity(), entries_.begin());
  // Plans that are gone leave their names behind; cleared when they are the greater part.
  if (by_content_.size() > 2 * (entries_.size() + 8)) {
    std::erase_if(by_content_, [](const auto& named) { return named.second.expired(); });
  }
}

void PlanCache::forget_least_recent() {
  const Entry& last = entries_.back();
  bytes_ -= bytes_of(*last.plan);
  by_identity_.erase(last.type.identity());
  entries_.pop_back();
}

PlanCache::Statistics PlanCache::statistics() const {
  const std::scoped_lock lock(mutex_);
  return statistics_;
}

std::size_t PlanCache::size() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

bool PlanCache::is_valid() const {
  const std::scoped_lock lock(mutex_);
  return holds_invariant();
}

bool PlanCache::holds_invariant() const {
  std::size_t bytes = 0;
  for (const Entry& entry : entries_) {
    const auto known = by_identity_.find(entry.type.identity());
    if (known == by_identity_.end() || &*known->second != &entry) return false;
    const auto [first, last] = by_content_.equal_range(entry.plan->hash());
    const auto names = std::count_if(
        first, last, [&](const auto& named) { return named.second.lock() == entry.plan; });
    if (names != 1) return false;
    bytes += bytes_of(*entry.plan);
  }
  return by_identity_.size() == entries_.size() && bytes == bytes_ &&
         entries_.size() <= options_.entries_max && bytes_ <= options_.bytes_max;
}

}  // namespace heddle
