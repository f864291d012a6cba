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

/// Has OpenBLAS take a buffer for each of `threads` threads that will call it at the same time,
/// 128 MiB of addresses each, of which it touches some MiB. It keeps them. Throws Error(usage),
/// with the numbers, where the system refuses them (no overcommit, a limit): in its first kernel
/// OpenBLAS would ask for one again and again, for ever. After OpenBLAS is loaded, before the first
/// task; one thread at a time.
void take_blas_buffers(std::int64_t threads);

}  // namespace heddle
