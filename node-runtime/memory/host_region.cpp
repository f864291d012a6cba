#include "node-runtime/memory/host_region.hpp"

#include <fmt/core.h>
#include <sys/mman.h>

#include "base/process_limits.hpp"

namespace heddle {

HostRegion::HostRegion(std::size_t bytes, const char* purpose) : bytes_(bytes) {
  if (bytes == 0) return;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    throw Error(ErrorCode::usage, fmt::format("{}; use more nodes or a smaller problem",
                                              memory_refused(purpose, bytes).what()));
  }
  ::madvise(address, bytes, MADV_HUGEPAGE);  // advice: without it everything works, slower
  address_ = static_cast<std::byte*>(address);
}

HostRegion::~HostRegion() {
  if (address_ != nullptr) ::munmap(address_, bytes_);
}

}  // namespace heddle
