#pragma once

#include <string>

#include "apps/janitor.hpp"

namespace heddle {

/// Throws Error(usage) with the reason if a file of this name cannot be written, by its name, its
/// permissions, and an attempt. Leaves nothing behind, even if killed.
void check_writable(const std::string& path, Janitor& janitor);
/// The same for a run's trace folder, which may exist.
void check_run_writable(const std::string& path, Janitor& janitor);

}  // namespace heddle
