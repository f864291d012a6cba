#pragma once

#include <cstdint>
#include <vector>

#include "replay/run.hpp"

namespace heddle::replay {

/// For each of the run's messages the time from which it was possible: its version was written and
/// the receiver had a block. So queueing in threads counts as part of the message. Its start if no
/// task of the job wrote the version. Before its end.
[[nodiscard]] std::vector<std::int64_t> message_begins(const RunTrace& run, std::int32_t job);

}  // namespace heddle::replay
