#pragma once

namespace heddle {

/// Restores the default action of crash signals that the communication library UCX has caught when
/// it was loaded. Its handler allocates memory for a backtrace, so a crash inside the allocator
/// would hang this process and all other nodes; a process that dies at once is detected at once and
/// leaves a core file. Setting UCX_HANDLE_ERRORS keeps UCX's handler.
///
/// Call while the process has one thread.
void remove_crash_handlers();

}  // namespace heddle
