#include "kernels/cpu/blas_memory.hpp"

#include <fmt/core.h>
#include <sys/mman.h>
#include <vector>

#include "base/process_limits.hpp"
#include "base/units.hpp"
#include "kernels/cpu/blas.hpp"

namespace heddle {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t library_bytes = 64 * mebibyte;
/// BUFFER_SIZE of OpenBLAS on x86-64.
constexpr std::uint64_t buffer_bytes = 128 * mebibyte;
/// Buffer, arena, stack.
constexpr std::uint64_t thread_bytes = buffer_bytes + (64 + 8) * mebibyte;

/// Tries a mapping of `bytes` of the kind that OpenBLAS makes, and unmaps it.
bool can_map(std::uint64_t bytes) {
  void* const address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return false;
  ::munmap(address, bytes);
  return true;
}

}  // namespace

std::optional<std::uint64_t> memory_beside_blas(std::int64_t threads, std::uint64_t other_bytes) {
  const auto limit = memory_limit();
  if (!limit) return std::nullopt;
  const std::uint64_t needed =
      library_bytes + static_cast<std::uint64_t>(threads) * thread_bytes + other_bytes;
  if (limit->left() > needed) return limit->left() - needed;
  throw Error(ErrorCode::usage,
              fmt::format("not enough memory: {}, but {} more are needed before any matrix "
                          "(CPU workers: {}); raise the limit, or set runtime.cpu_workers to fewer",
                          describe(*limit), format_bytes(needed), threads));
}

void take_blas_buffers(std::int64_t threads) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(threads) * buffer_bytes;
  if (!can_map(bytes)) {
    throw memory_refused(
        fmt::format("OpenBLAS's buffers, one for each of {} computing threads", threads), bytes);
  }
  const Blas& library = blas();
  if (library.take_buffer == nullptr || library.give_buffer == nullptr) return;
  std::vector<void*> buffers;
  for (std::int64_t i = 0; i < threads; ++i) buffers.push_back(library.take_buffer(0));
  for (void* buffer : buffers) library.give_buffer(buffer);
}

}  // namespace heddle
