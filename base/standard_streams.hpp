#pragma once

namespace heddle {

/// Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed, so that no file and no
/// socket gets one of these numbers: what is printed would go into it. Ends the process with status
/// 1 where that is impossible.
///
/// The first thing that a program does, and a child that has closed its files.
void open_standard_streams();

}  // namespace heddle
