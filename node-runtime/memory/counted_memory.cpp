#include "node-runtime/memory/counted_memory.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle {

void CountedMemory::reserve(std::size_t bytes, const char* purpose) {
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  do {
    if (bytes > max_ - std::min(max_, taken)) {
      throw Error(
          ErrorCode::usage,
          fmt::format("{} take {} of host memory, but of the {} that this node may use {} "
                      "are taken; use more nodes or a smaller problem",
                      purpose, format_bytes(bytes), format_bytes(max_), format_bytes(taken)));
    }
  } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  std::uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < taken + bytes &&
         !peak_.compare_exchange_weak(peak, taken + bytes, std::memory_order_relaxed)) {
  }
}

void CountedMemory::release(std::size_t bytes) {
  const std::uint64_t before = taken_.fetch_sub(bytes, std::memory_order_relaxed);
  HEDDLE_CHECK(before >= bytes, "{} of {} bytes are released", bytes, before);
}

HostRegion CountedMemory::allocate(std::size_t bytes, const char* purpose) {
  reserve(bytes, purpose);
  drop_kept();
  try {
    return {bytes, purpose};
  } catch (...) {
    release(bytes);
    throw;
  }
}

HostRegion CountedMemory::reuse(std::size_t bytes, const char* purpose) {
  std::ranges::sort(kept_, {}, &HostRegion::bytes);
  const auto found = std::ranges::lower_bound(kept_, bytes, {}, &HostRegion::bytes);
  if (bytes == 0 || found == kept_.end() || found->bytes() > 2 * bytes) return {};
  if (found->bytes() > available()) return {};
  reserve(found->bytes(), purpose);
  HostRegion region = std::move(*found);
  kept_.erase(found);
  return region;
}

void CountedMemory::keep(HostRegion region) {
  if (region.bytes() > 0) kept_.push_back(std::move(region));
}

std::uint64_t CountedMemory::available() const {
  return max_ - std::min(max_, taken());
}

bool CountedMemory::is_valid() const {
  return taken() <= peak() && peak() <= max_ && std::ranges::all_of(kept_, [](const HostRegion& r) {
           return r.bytes() > 0 && r.address() != nullptr;
         });
}

}  // namespace heddle
