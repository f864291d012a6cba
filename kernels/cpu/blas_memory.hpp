#pragma once

#include <cstdint>
#include <optional>

namespace heddle {

/// What a limit of this process's own memory (ulimit -v, ulimit -d) leaves beside OpenBLAS and
/// `threads` threads that call it, and beside `other_bytes`: each such thread has a stack, an arena
/// of malloc() and a buffer of OpenBLAS. Nothing where there is no limit. Throws Error(usage), with
/// the numbers, where not even these fit: OpenBLAS would wait for ever for a buffer that the system
/// refuses. Before OpenBLAS is loaded and the threads are started.
[[nodiscard]] std::optional<std::uint64_t> memory_beside_blas(std::int64_t threads,
                                                              std::uint64_t other_bytes = 0);

}  // namespace heddle
