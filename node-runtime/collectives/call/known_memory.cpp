#include "node-runtime/collectives/call/known_memory.hpp"

#include <algorithm>
#include <iterator>

namespace heddle::collectives {

void KnownMemory::begins(std::int64_t operation) {
  const std::scoped_lock lock(mutex_);
  under_way_.insert(operation);
  last_ = std::max(last_, operation);
}

void KnownMemory::ended(std::int64_t operation) {
  const std::scoped_lock lock(mutex_);
  under_way_.erase(operation);
}

std::int64_t KnownMemory::heard_before(std::int64_t operation) const {
  const std::scoped_lock lock(mutex_);
  const std::int64_t first = under_way_.empty() ? last_ + 1 : *under_way_.begin();
  return std::min(first, operation) - 1;
}

void KnownMemory::learn(std::int64_t operation, std::uint64_t memory, Fact fact) {
  const std::scoped_lock lock(mutex_);
  facts_.insert_or_assign({memory, operation}, std::move(fact));
  if (facts_.size() > 2 * operations_known) forget(operation - 2 * operations_known);
}

/// Operations up to this one.
void KnownMemory::forget(std::int64_t operation) {
  std::erase_if(facts_, [&](const auto& known) { return known.first.second <= operation; });
}

KnownMemory::Fact KnownMemory::of(std::uint64_t memory, std::int64_t heard) const {
  const std::scoped_lock lock(mutex_);
  const auto behind = facts_.upper_bound({memory, heard});
  if (behind == facts_.begin()) return {};
  const auto& [name, fact] = *std::prev(behind);
  const bool counts = name.first == memory && name.second > heard - operations_known;
  return counts ? fact : Fact{};
}

void KnownMemory::learn_refused(std::uint64_t mapping) {
  const std::scoped_lock lock(mutex_);
  if (refused_.size() >= refused_max) refused_.clear();
  refused_.insert(mapping);
}

bool KnownMemory::is_refused(std::uint64_t mapping) const {
  const std::scoped_lock lock(mutex_);
  return refused_.contains(mapping);
}

void KnownMemory::keep(std::shared_ptr<std::byte> memory) {
  const std::scoped_lock lock(mutex_);
  kept_.push_back(std::move(memory));
}

}  // namespace heddle::collectives
