#include "node-runtime/scheduling/pool_size.hpp"

#include <algorithm>

namespace heddle {

std::int32_t useful_blocks(PlaceId place, std::int32_t minimum, std::int32_t cpu_workers,
                           bool passes_tiles_on, std::size_t block_bytes) {
  constexpr std::int64_t most = 1024;
  constexpr std::int64_t some = 64;
  constexpr std::int64_t bytes_ahead = std::int64_t{256} << 20;  // of a job that passes tiles on
  constexpr std::int64_t host_bytes_most = std::int64_t{1} << 30;
  // Larger tiles are those of matrices with few of them.
  constexpr std::int64_t large = std::int64_t{64} << 20;
  constexpr std::int64_t few = 4;
  if (minimum == 0) return 0;
  const auto size = static_cast<std::int64_t>(std::max<std::size_t>(1, block_bytes));
  std::int64_t ahead = size > large ? few : some;
  if (place == host_place) {
    const std::int64_t least = std::max<std::int64_t>(some, 8 * cpu_workers);
    const std::int64_t wanted = std::max<std::int64_t>(4 * some, 32 * cpu_workers);
    ahead = passes_tiles_on ? std::clamp(bytes_ahead / size, least, wanted) : least;
    // Blocks of 32 MiB, as devices' tiles are, are few: what passes through the host are copies of
    // these tiles, not work for each of its cores.
    ahead = std::min(ahead, std::max(some / 4, host_bytes_most / size));
  }
  return static_cast<std::int32_t>(std::min(most, 4 * std::int64_t{minimum} + ahead));
}

std::int32_t affordable_blocks(std::int32_t useful, std::int64_t left) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(left / 2, 0, useful));
}

}  // namespace heddle
