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
///
/// Flows between the same two resources always have the same rate, and form a bundle. A change
/// costs a step for each bundle of a resource, however many flows there are: an interface of a host
/// has a bundle for each other host.
///
/// Invariant: a resource's part is its rate / number of its flows. A bundle's rate is the smaller
/// part of its two resources; its first member ends when each of its members has been served
/// `until` since the bundle began.
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
  /// The flow that comes() has returned. Appends the ends of other flows that move forward.
  void end(std::int64_t now_ns, FlowId flow, std::vector<Foreseen>& foreseen);
  /// Prefetches the resource, its flows, and so on, by round.
  void fetch(ResourceId id, int round) const;
  [[nodiscard]] std::int64_t under_way() const { return under_way_; }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  using BundleId = Index<struct BundleTag, std::int32_t>;

  struct Resource {
    double rate_per_ns = 0;
    double part = 0;               ///< share of one flow
    std::int64_t told_ns = never;  ///< reported end that has not come yet
    std::int32_t users = 0;        ///< flows
    std::vector<BundleId> bundles;
  };
  struct Member {
    double until = 0;          ///< ends when each member has been served so much
    std::uint64_t number = 0;  ///< by beginning
    FlowId flow;
  };
  struct Bundle {
    std::array<ResourceId, 2> uses;  ///< equal if there is only one: a bundle for each flow
    double rate = 0;                 ///< of each member
    double served = 0;               ///< to each member by `since_ns`
    std::int64_t since_ns = 0;
    std::int64_t end_ns = never;  ///< of the first member
    std::vector<Member> members;  ///< a heap, the first end in front
  };
  /// Orders a heap of members.
  static bool is_later(const Member& a, const Member& b) {
    return a.until != b.until ? a.until > b.until : a.number > b.number;
  }

  [[nodiscard]] Resource& at(ResourceId id) {
    return resources_[static_cast<std::size_t>(id.value())];
  }
  [[nodiscard]] Bundle& at(BundleId id) { return bundles_[static_cast<std::size_t>(id.value())]; }
  [[nodiscard]] BundleId bundle_of(std::int64_t now_ns, ResourceId first, ResourceId second);
  void add_users(ResourceId id, std::int32_t count);
  static void serve(std::int64_t now_ns, Bundle& bundle);
  void change(std::int64_t now_ns, Bundle& bundle);
  void change_around(std::int64_t now_ns, std::array<ResourceId, 2> uses,
                     std::vector<Foreseen>& foreseen);
  void tell(ResourceId first, std::int64_t end_ns, std::vector<Foreseen>& foreseen);

  std::vector<Resource> resources_;
  std::vector<Bundle> bundles_;
  std::vector<BundleId> free_bundles_;
  std::vector<BundleId> flows_;  ///< the bundle of each
  std::vector<FlowId> free_flows_;
  std::uint64_t begun_ = 0;
  std::int64_t under_way_ = 0;
};

}  // namespace heddle::replay
