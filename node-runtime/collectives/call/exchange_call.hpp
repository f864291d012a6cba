#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"

namespace heddle::collectives {

/// Elements of a rank for another one, or from it.
struct RankElements {
  std::int32_t peer = 0;
  Elements elements;
  std::optional<p2p::LaneId> lane{};  ///< the device that they lie on; none: the host
};

/// What a rank asks for when an exchange is made.
struct ExchangeCall {
  std::vector<RankElements> outgoing;
  std::vector<RankElements> incoming;
  std::string method = "auto";
  std::string receives = "early";
  std::string name{};

  /// "exchange 'halo'", or "an exchange".
  [[nodiscard]] std::string describe() const;
};

/// Throws Error(usage) for what makes no sense on a rank of a group of `size`, before anything
/// travels: a rank that is not there, negative counts, null memory with elements, received types
/// that overlap, incoming parts that overlap each other or an outgoing one. Exact: parts may
/// interleave. O(n log n) in the blocks of those that do.
void check(const ExchangeCall& call, std::int32_t size);
/// Finds out where the parts of a checked call lie. Throws Error(usage) for memory that messages
/// cannot take, naming the part.
void find_lanes(ExchangeCall& call, const RankDevices& devices);

/// What the other members hear of a part. Plain numbers of 8 bytes.
struct PartNote {
  std::int64_t peer = 0;
  std::int64_t count = 0;
  std::int64_t element_bytes = 0;
  std::int64_t scalar = -1;  ///< that an element consists of; -1: several
  std::uint64_t digest = 0;  ///< of the signature of all elements

  static constexpr std::int64_t numbers = 5;
  [[nodiscard]] std::int64_t bytes() const { return count * element_bytes; }
  /// "100 elements of float64".
  [[nodiscard]] std::string describe() const;
};
[[nodiscard]] std::vector<PartNote> notes_of(const std::vector<RankElements>& parts);

/// The notes of all members, by rank.
struct ExchangeNotes {
  std::vector<std::vector<PartNote>> outgoing;
  std::vector<std::vector<PartNote>> incoming;
};

/// A part of the exchange, which both of its ranks have given.
struct MatchedPart {
  Rank from;
  Rank to;
  std::int32_t outgoing = 0;  ///< its number among the outgoing parts of `from`
  std::int32_t incoming = 0;  ///< and among the incoming ones of `to`
  std::int64_t bytes = 0;
  std::uint64_t digest = 0;
};

/// The parts of all members, ascending by `from`, then by `outgoing`: of those between two ranks
/// the first outgoing one is the first incoming one, and so on. Throws Error(usage) with both sides
/// where they differ, the same on all members.
[[nodiscard]] std::vector<MatchedPart> match(const ExchangeNotes& notes, const std::string& name);

}  // namespace heddle::collectives
