#include "kernels/cpu/blas_memory.hpp"

#include <fmt/core.h>

#include "base/process_limits.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t library_bytes = 64 * mebibyte;
/// Buffer (BUFFER_SIZE of OpenBLAS on x86-64), arena, stack.
constexpr std::uint64_t thread_bytes = (128 + 64 + 8) * mebibyte;

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

}  // namespace heddle
