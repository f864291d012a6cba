#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/index.hpp"

namespace heddle::replay {

/// Something that several may use at a time, each with an equal part of its rate: one way of a
/// network interface, a device's multiprocessors.
using ResourceId = Index<struct SharedResourceTag, std::int32_t>;
/// A use of one or two of these.
using FlowId = Index<struct FlowTag, std::int32_t>;

/// Who advances how fast where resources are shared: a flow takes of each resource that it uses the
/// part of one among all who use it, and advances at the smallest of these. (Not what a flow leaves
/// that is slower elsewhere: links at work are rarely that uneven.)
///
/// Ends that were foreseen change when others begin or end. Of the flows with one first resource
/// only the next end is told: who sends to hundreds has one time to wait for, not hundreds that all
/// move with each end. Numbers of ended flows are given again. Pure; not thread-safe.
class SharedRates {
 public:
  /// `rate`: what it does in a second, when one alone uses it.
  ResourceId add_resource(double rate);

  /// The next end among flows with that first resource: to be given back to comes() when that time
  /// has come.
  struct Foreseen {
    ResourceId resource;
    std::int64_t end_ns = 0;
  };
  /// Begins a use of `first` and, where it is another one, `second`, which lasts until `amount` is
  /// done. Adds the ends that are foreseen now and were not before.
  FlowId begin(std::int64_t now_ns, double amount, ResourceId first, ResourceId second,
               std::vector<Foreseen>& foreseen);
  /// The flow that ends now, which the caller has to end() next. Otherwise others have slowed it
  /// down, and a later end is added, or it has been told of already.
  [[nodiscard]] std::optional<FlowId> comes(const Foreseen& end, std::vector<Foreseen>& foreseen);
  /// Adds the ends of others that come earlier for it.
  void end(std::int64_t now_ns, FlowId flow, std::vector<Foreseen>& foreseen);
  /// Into the caches: the resource, what names its flows, these.
  void fetch(ResourceId id, int round) const;
  [[nodiscard]] std::int64_t under_way() const { return under_way_; }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  struct Resource {
    double rate_per_ns = 0;
    double part = 0;               ///< of one of those that use it
    std::int64_t told_ns = never;  ///< the end that was foreseen and has not come yet
    std::vector<FlowId> flows;
  };
  struct Flow {
    std::array<ResourceId, 2> uses;  ///< the same twice: of one alone
    double left = 0;
    double rate = 0;
    std::int64_t since_ns = 0;
    std::int64_t end_ns = 0;
  };

  [[nodiscard]] Resource& at(ResourceId id) {
    return resources_[static_cast<std::size_t>(id.value())];
  }
  [[nodiscard]] Flow& at(FlowId id) { return flows_[static_cast<std::size_t>(id.value())]; }
  void add_user(ResourceId id, FlowId flow);
  void remove_user(ResourceId id, FlowId flow);
  void change(std::int64_t now_ns, Flow& flow);
  void change_around(std::int64_t now_ns, std::array<ResourceId, 2> uses,
                     std::vector<Foreseen>& foreseen);
  void tell(ResourceId first, std::int64_t end_ns, std::vector<Foreseen>& foreseen);

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<FlowId> free_;
  std::int64_t under_way_ = 0;
};

}  // namespace heddle::replay
