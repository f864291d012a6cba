#pragma once

#include <string>

namespace heddle {

/// Throws Error(usage) with the reason when a file of this name could not be written: what names
/// and permissions tell, and what only trying does. Leaves nothing behind.
void check_writable(const std::string& path);
/// The same of a run's trace, which is a folder, that may be there.
void check_run_writable(const std::string& path);

}  // namespace heddle
