#pragma once

#include <cstddef>

namespace heddle {

/// Faults in missing pages with several threads where that pays (one thread clears a GiB in about a
/// third of a second), ahead of page-locking. Contents are kept, and others may use the memory
/// meanwhile. Without support by the system, pages are faulted in on first touch.
void populate_pages(void* address, std::size_t bytes);

}  // namespace heddle
