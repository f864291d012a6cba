#pragma once

#include <string>

#include "apps/janitor.hpp"

namespace heddle {

/// Throws Error(usage) with the reason when a file of this name could not be written: what names
/// and permissions tell, and what only trying does. Leaves nothing behind, killed or interrupted
/// neither.
void check_writable(const std::string& path, Janitor& janitor);
/// The same of a run's trace, which is a folder, that may be there.
void check_run_writable(const std::string& path, Janitor& janitor);

}  // namespace heddle
