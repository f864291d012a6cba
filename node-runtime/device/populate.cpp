#include "node-runtime/device/populate.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace heddle {
namespace {

/// Linux 5.14; older headers lack it.
#ifdef MADV_POPULATE_WRITE
constexpr int populate_for_writing = MADV_POPULATE_WRITE;
#else
constexpr int populate_for_writing = 23;
#endif

/// Smallest share worth a thread: about 1 ms of work.
constexpr std::size_t share_bytes = std::size_t{4} << 20;
constexpr std::size_t threads_max = 16;

}  // namespace

void populate_pages(void* address, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(address) % page;
  std::byte* const first = static_cast<std::byte*>(address) - before;
  const std::size_t all = before + bytes;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t shares =
      std::clamp<std::size_t>(bytes / share_bytes, 1, std::min(cores, threads_max));
  const std::size_t each = (all / shares + page - 1) / page * page;
  const auto populate = [=](std::size_t share) {
    const std::size_t from = std::min(all, share * each);
    // The last thread gets the remainder.
    const std::size_t to = share + 1 == shares ? all : std::min(all, from + each);
    // EINVAL before Linux 5.14: page-locking then faults the pages in.
    if (from < to) ::madvise(first + from, to - from, populate_for_writing);
  };
  std::vector<std::jthread> others;
  others.reserve(shares - 1);
  for (std::size_t share = 1; share < shares; ++share) others.emplace_back(populate, share);
  populate(0);
}

}  // namespace heddle
