#pragma once

#include <atomic>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <optional>
#include <string>

/// What only CUDA's driver interface has.
namespace heddle {

/// The GPU that a stream belongs to; nullopt: it is none.
[[nodiscard]] std::optional<int> gpu_of(cudaStream_t stream);

/// Queues a wait until the word is at least `value`. Why not, if the driver refuses.
[[nodiscard]] std::optional<std::string> wait_for_word(cudaStream_t stream,
                                                       const std::atomic<std::uint64_t>* word,
                                                       std::uint64_t value);

/// All kernels of a module are loaded with it, not each when it is first launched
/// (CUDA_MODULE_LOADING=EAGER).
[[nodiscard]] bool loads_eagerly();

/// Queues of a GPU that the streams of this process are dealt out to
/// (CUDA_DEVICE_MAX_CONNECTIONS, 8 by default).
[[nodiscard]] std::uint32_t hardware_queues();

}  // namespace heddle
