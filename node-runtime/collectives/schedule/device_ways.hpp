#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/device_rates.hpp"
#include "node-runtime/collectives/schedule/places.hpp"

/// Which way an operation on memory of devices takes on one host, by predicted times (002 sections
/// 4 and 5). Pure, and the same on all ranks for the same arguments.
namespace heddle::collectives {

enum class PredictedWay : std::uint8_t {
  direct,  ///< the first rank on each device does a share for all
  gsb,     ///< ranks copy to and from a buffer of one rank's device
  staged,  ///< likewise, through host memory
  steps,   ///< the schedule's steps, by messages of device memory
};
inline constexpr std::array<std::string_view, 4> predicted_way_names{"direct", "gsb", "staged",
                                                                     "steps"};
[[nodiscard]] constexpr std::string_view name_of(PredictedWay way) {
  return predicted_way_names.at(static_cast<std::size_t>(way));
}

struct DeviceWayQuery {
  CollectiveKind kind = CollectiveKind::barrier;
  double bytes = 0;  ///< as CollectiveQuery's
  Rank root{0};
  bool is_in_place = false;
  double gsb_fragment_bytes = 1 << 19;
  /// What operations without a root and steps are chosen by, and what was chosen.
  const CollectiveQuery* steps = nullptr;
  const CollectiveChoice* chosen = nullptr;
  /// Why `direct` cannot be taken; empty: it can. Then neither can gsb.
  std::string_view no_direct;
};

struct DeviceWayChoice {
  struct Candidate {
    PredictedWay way = PredictedWay::steps;
    double seconds = 0;
    std::string_view lacks;  ///< why it cannot be taken; empty: it can
  };
  /// Those that can be taken first, the fastest of them first of all.
  std::vector<Candidate> considered;
  double tell_s = 0;  ///< until all ranks know where all memory is: a part of `direct`

  [[nodiscard]] PredictedWay way() const { return considered.front().way; }
  [[nodiscard]] double seconds_of(PredictedWay way) const;
};

/// `places`: on one host. A rank whose GPU is not known has one of its own.
[[nodiscard]] DeviceWayChoice choose_device_way(const DeviceWayQuery& query, const Places& places,
                                                const DeviceRates& rates);

/// What the steps of a choice take by other rates than those that it was made by.
[[nodiscard]] double seconds_of_steps(const CollectiveQuery& query, const CollectiveChoice& choice,
                                      const CollectiveRates& rates);

/// One of two choices for elements of which nobody knows all the places: the best one by rates of
/// hosts' memory, and the best one by those of devices'. That one is taken which is the smaller
/// number of times slower than the other where the other one is best. Its seconds are by `host`.
[[nodiscard]] CollectiveChoice steps_for_both(const CollectiveQuery& query,
                                              CollectiveChoice for_hosts,
                                              const CollectiveChoice& for_devices,
                                              const CollectiveRates& host,
                                              const CollectiveRates& device);

/// What messages of device memory between ranks of a host take.
[[nodiscard]] CollectiveRates rates_of_device_memory(const DeviceRates& rates);

}  // namespace heddle::collectives
