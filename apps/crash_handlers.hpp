#pragma once

namespace heddle {

/// Gives signals of crashes their usual effect, where the communication library UCX has taken them
/// when it was loaded. Its handler allocates memory to print a backtrace, so a process that crashes
/// inside the allocator would wait for itself, and all other nodes for it; a process that ends at
/// once is missed at once, and leaves the core file that was asked for. Who sets UCX_HANDLE_ERRORS
/// keeps its handler.
///
/// Called while the process has one thread.
void remove_crash_handlers();

}  // namespace heddle
