#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/pack_plan.hpp"

namespace heddle {

/// Commits datatypes: makes their plans, and keeps them for the next time.
///
/// A type that was committed before is found by its identity. Another one gets a plan made, and
/// where that is equal to a plan that is still in use or kept, that one: equal types share a
/// plan, and with it whatever a device keeps for it, whichever way they were described.
///
/// Bounded by `Options`: the least recently committed type is forgotten. A plan stays as long as a
/// user holds it; one that is too large for the cache is returned without being kept.
///
/// Invariant (`is_valid()`): entries_ is ordered from the most recently used; by_identity_ has each
/// entry once; bytes_ is the sum of the entries' plans; entries_.size() <= entries_max and bytes_
/// <= bytes_max; by_content_ has every plan of an entry once.
///
/// Threads: any.
class PlanCache {
 public:
  struct Options {
    std::size_t entries_max = 1024;
    /// Each entry counts its plan's units, also where entries share a plan.
    std::size_t bytes_max = std::size_t{64} << 20U;
  };
  struct Statistics {
    std::int64_t found = 0;   ///< by identity
    std::int64_t shared = 0;  ///< equal to that of another type
    std::int64_t made = 0;
  };

  PlanCache() : PlanCache(Options{}) {}
  explicit PlanCache(const Options& options) : options_(options) {}

  /// Throws what make_plan throws.
  [[nodiscard]] std::shared_ptr<const PackPlan> commit(const Datatype& type);

  [[nodiscard]] Statistics statistics() const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool is_valid() const;

 private:
  struct Entry {
    Datatype type;  // keeps its identity from being that of another type
    std::shared_ptr<const PackPlan> plan;
  };
  [[nodiscard]] static std::size_t bytes_of(const PackPlan& plan);
  [[nodiscard]] std::shared_ptr<const PackPlan> shared(std::shared_ptr<const PackPlan> plan);
  void keep(const Datatype& type, const std::shared_ptr<const PackPlan>& plan);
  void forget_least_recent();
  [[nodiscard]] bool holds_invariant() const;

  Options options_;
  mutable std::mutex mutex_;  // of all below
  std::list<Entry> entries_;
  std::unordered_map<const void*, std::list<Entry>::iterator> by_identity_;
  std::unordered_multimap<std::size_t, std::weak_ptr<const PackPlan>> by_content_;
  std::size_t bytes_ = 0;
  Statistics statistics_;
};

}  // namespace heddle
