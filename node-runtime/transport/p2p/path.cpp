#include "node-runtime/transport/p2p/path.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace heddle::p2p {
namespace {

constexpr std::array<std::string_view, path_count> names{"eager", "message", "shared",
                                                         "get",   "put",     "ring"};

/// The size of `pieces` equal pieces, within bounds.
std::int64_t even_piece(std::int64_t bytes, std::int64_t pieces, std::int64_t least,
                        std::int64_t most) {
  constexpr std::int64_t multiple = 4096;
  const std::int64_t even = (bytes / pieces + multiple - 1) / multiple * multiple;
  return std::min(most, std::max(even, least));
}

}  // namespace

std::int64_t PathSizes::shared_piece(std::int64_t bytes, bool any_on_device) const {
  return any_on_device ? piece_bytes
                       : even_piece(bytes, shared_pieces, shared_piece_bytes_min, piece_bytes);
}

std::int64_t PathSizes::ring_piece(std::int64_t bytes) const {
  return even_piece(bytes, ring_pieces, ring_piece_bytes_min, ring_piece_bytes);
}

std::string_view name_of(Path path) {
  return names.at(static_cast<std::size_t>(path));
}

std::optional<Path> path_named(std::string_view name) {
  const auto* const found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Path>(found - names.begin());
}

}  // namespace heddle::p2p
