#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/index.hpp"

namespace heddle::replay {

/// A resource shared equally among its users: a direction of a network interface, a device's
/// multiprocessors.
using ResourceId = Index<struct SharedResourceTag, std::int32_t>;
/// A use of one or two resources.
using FlowId = Index<struct FlowTag, std::int32_t>;

/// Progress of flows over shared resources: a flow gets an equal share of each of its resources and
/// advances at the smaller one. (What it leaves of the other is not redistributed: links in use are
/// rarely that uneven.)
///
/// Predicted ends change when other flows begin or end. Only the next end per first resource is
/// reported, so a sender to hundreds has one pending event. Numbers of ended flows are reused.
/// Pure; not thread-safe.
class SharedRates {
 public:
  /// `rate`: amount per second for a single user.
  ResourceId add_resource(double rate);

  /// The predicted next end among flows with that first resource: pass it to comes() at that time.
  struct Foreseen {
    ResourceId resource;
    std::int64_t end_ns = 0;
  };
  /// Begins a flow of `amount` on `first` and, if different, `second`. Appends newly predicted
  /// ends.
  FlowId begin(std::int64_t now_ns, double amount, ResourceId first, ResourceId second,
               std::vector<Foreseen>& foreseen);
  /// The flow that ends now, for which the caller calls end() next. Otherwise the flow was slowed
  /// down, and a later end is appended or already reported.
  [[nodiscard]] std::optional<FlowId> comes(const Foreseen& end, std::vector<Foreseen>& foreseen);
  /// Appends the ends of other flows that move forward.
  void end(std::int64_t now_ns, FlowId flow, std::vector<Foreseen>& foreseen);
  /// Prefetches the resource, its flows, and so on, by round.
  void fetch(ResourceId id, int round) const;
  [[nodiscard]] std::int64_t under_way() const { return under_way_; }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  struct Resource {
    double rate_per_ns = 0;
    double part = 0;               ///< share of one user
    std::int64_t told_ns = never;  ///< reported end that has not come yet
    std::vector<FlowId> flows;
  };
  struct Flow {
    std::array<ResourceId, 2> uses;  ///< equal if there is only one
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
