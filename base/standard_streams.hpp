#pragma once

namespace heddle {

/// Opens /dev/null on each closed descriptor of 0, 1 and 2, so that no file or socket gets one of
/// these numbers and receives printed text. Exits with status 1 on failure.
///
/// Call it first in main(), and in a child that has closed its files.
void open_standard_streams();

}  // namespace heddle
