#pragma once

#include <cstddef>

namespace heddle {

/// Gives pages to memory that has none yet, by several threads where that pays: one of them clears
/// a GiB in about a third of a second, and page-locking would wait for that. Contents stay, and
/// others may use the memory meanwhile. Where the system cannot do that, pages come when they are
/// touched.
void populate_pages(void* address, std::size_t bytes);

}  // namespace heddle
