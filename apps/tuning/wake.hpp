#pragma once

namespace heddle::tuning {

/// What it takes here from the ringing of a doorbell until a thread that sleeps on it runs, as CPU
/// workers wait for tasks: seconds, a median. Takes some tens of milliseconds.
[[nodiscard]] double wake_seconds();

}  // namespace heddle::tuning
