#include "node-runtime/scheduling/placement_policy.hpp"

#include "base/assert.hpp"

namespace heddle {

bool StaticPlacement::may_lend(double /*devices_seconds*/, double /*workers_seconds*/) const {
  return false;
}

bool StaticPlacement::lends(double /*device_seconds*/, double /*host_seconds*/) const {
  return false;
}

bool DynamicPlacement::may_lend(double devices_seconds, double workers_seconds) const {
  HEDDLE_DEBUG(devices_seconds >= 0 && workers_seconds >= 0, "{} and {} s", devices_seconds,
               workers_seconds);
  return least_worth * workers_seconds <= devices_seconds;
}

bool DynamicPlacement::lends(double device_seconds, double host_seconds) const {
  return host_seconds < device_seconds;
}

}  // namespace heddle
