#pragma once

#include <memory>

namespace heddle {

/// Keeps `memory` until the process ends: what a library may still write to, or read, when its user
/// has failed and is destroyed. Thread: any.
void keep_to_the_end(std::shared_ptr<void> memory);

}  // namespace heddle
