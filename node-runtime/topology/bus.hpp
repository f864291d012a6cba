#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

/// Where on a host something is attached, or a process works. Numbers are the host's.
struct BusPlace {
  std::int32_t socket = 0;
  std::int32_t pci_switch = 0;  ///< what hangs on one bridge below the socket's; 0: on none
  std::int32_t card = 0;        ///< the nearest network interface; 0 if there is none

  friend bool operator==(const BusPlace&, const BusPlace&) = default;
};

/// The buses of this host as hwloc knows them. Reads them at each call: for start-up.
///
/// `xml`: a file that hwloc has written on another machine, instead; for tests. What hwloc does not
/// report is 0.
[[nodiscard]] BusPlace place_on_bus(std::string_view pci_address, const std::string& xml = {});

/// The interface that is nearest to cores of a socket.
[[nodiscard]] std::int32_t card_of_socket(std::int32_t socket, const std::string& xml = {});

}  // namespace heddle
