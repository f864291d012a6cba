#pragma once

namespace heddle::collectives {

/// What devices of a host and the notes between their ranks take. Seconds, bytes per second. The
/// defaults are what H200 GPUs with NVLink have given.
struct DeviceRates {
  double note_s = 1e-6;                ///< from one rank to another
  double work_s = 10e-6;               ///< a short copy or kernel, until the host has seen its end
  double launch_s = 3e-6;              ///< another one behind it
  double peer_s = 0;                   ///< a copy between devices, beside work_s
  double peer_bytes_per_s = 350e9;     ///< of each device, in each direction
  double switch_bytes_per_s = 0;       ///< of what a PCI switch's devices share; 0: no limit
  double within_bytes_per_s = 1800e9;  ///< of a device's memory: copied, so read and written
  double to_host_bytes_per_s = 50e9;
  double to_device_bytes_per_s = 50e9;
  double host_bytes_per_s = 8e9;  ///< of messages of host memory, when device memory is staged
  /// Until a device turns from one process's work to another one's; 0: it need not.
  double turn_s = 0;
};

}  // namespace heddle::collectives
