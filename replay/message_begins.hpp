#pragma once

#include <cstdint>
#include <vector>

#include "replay/run.hpp"

namespace heddle::replay {

/// For each of the run's messages, since when it could be: a task of the job had written its
/// version and the receiver had a block for it. What threads had to do before it began is so part
/// of what it took. Of versions that no task of the job wrote, when it began. Earlier than its end.
[[nodiscard]] std::vector<std::int64_t> message_begins(const RunTrace& run, std::int32_t job);

}  // namespace heddle::replay
