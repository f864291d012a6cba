#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

/// The host cache (000 section 5.2.4): a rank whose memory is on a device, and which exchanges with
/// other hosts, keeps fragments in host memory while it passes them on. Pure.
namespace heddle::collectives {

/// Which ranks are sent a fragment from the host cache; the rank's own device has it there too.
enum class HostCache : std::uint8_t {
  none,   ///< nobody: each message is staged by itself
  hosts,  ///< ranks on other hosts; those on the own host get it from the device
  all,    ///< all ranks
};
/// "steps", "host cache" and "host cache for all": as CollectiveChoice::DeviceCandidate::way.
[[nodiscard]] std::string_view name_of(HostCache cache);

/// `plain`, of a rank whose memory is on a device, with a host cache. What comes from another host
/// and is passed on is received into a slot there, sent from the slot, and copied to where `plain`
/// has it. What is sent more than once, also to another host, is first copied to a slot, once. What
/// has one reader is left as it is, since a message stages it as well, as are messages of several
/// blocks. Peers, blocks and order of all messages stay as they are, so the other ranks' schedules
/// do not change. O(steps log steps).
[[nodiscard]] Schedule with_host_cache(Schedule plain, const Places& places, HostCache cache);

/// Operations whose fragments are passed on whole: the others have none.
[[nodiscard]] bool may_have_host_cache(CollectiveKind kind);

/// What an operation is to take whose ranks all have their memory on devices, by `choice`. One
/// message between hosts takes that of host memory; without the cache also a copy at both ends.
[[nodiscard]] double seconds_with_host_cache(const CollectiveQuery& query,
                                             const CollectiveChoice& choice,
                                             const CollectiveRates& rates, HostCache cache);

/// All of them with their times, the fastest first.
struct HostCacheCandidate {
  HostCache cache = HostCache::none;
  double seconds = 0;
};
[[nodiscard]] std::vector<HostCacheCandidate> host_caches(const CollectiveQuery& query,
                                                          const CollectiveChoice& choice,
                                                          const CollectiveRates& rates);

}  // namespace heddle::collectives
