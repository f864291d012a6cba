#include "node-runtime/topology/core_share.hpp"

#include <algorithm>
#include <iterator>

namespace heddle {

CpuMask mask_of(std::span<const CpuCore> cores) {
  constexpr std::size_t bits = 64;
  CpuMask mask{};
  for (const CpuCore& core : cores) {
    for (const std::int32_t thread : core.hardware_threads) {
      const auto number = static_cast<std::size_t>(thread);
      if (number / bits < mask.size()) mask[number / bits] |= std::uint64_t{1} << number % bits;
    }
  }
  return mask;
}

CoreShare share_cores(std::span<const CpuMask> masks, std::size_t self) {
  const auto overlap = [&](const CpuMask& other) {
    for (std::size_t w = 0; w < other.size(); ++w) {
      if ((other[w] & masks[self][w]) != 0) return true;
    }
    return false;
  };
  CoreShare share;
  for (std::size_t p = 0; p < masks.size(); ++p) {
    if (p == self || !overlap(masks[p])) continue;
    ++share.sharers;
    if (p < self) ++share.position;
    share.divisible = share.divisible && masks[p] == masks[self];
  }
  return share;
}

std::vector<CpuCore> CoreShare::part_of(std::span<const CpuCore> cores, std::int32_t wanted) const {
  const std::size_t each = cores.size() / static_cast<std::size_t>(sharers);
  if (!divisible || each < static_cast<std::size_t>(std::max(wanted, 1))) return {};
  const auto mine = cores.subspan(each * static_cast<std::size_t>(position), each);
  return {mine.begin(), mine.end()};
}

std::span<const CpuCore> cores_beside_workers(std::span<const CpuCore> part, std::int32_t workers,
                                              std::int32_t others) {
  const bool have_theirs = std::ssize(part) >= std::int64_t{workers} + others;
  return have_theirs ? part.subspan(static_cast<std::size_t>(workers)) : part;
}

}  // namespace heddle
