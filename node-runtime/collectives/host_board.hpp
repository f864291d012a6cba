#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "node-runtime/collectives/board/board.hpp"
#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/transport/p2p/mpi/host_region.hpp"
#include "node-runtime/transport/p2p/shape_cache.hpp"

namespace heddle::collectives {

/// A member's call is not this member's.
struct BoardMisfit {
  Rank peer;
};

/// Small operations of a group whose members are all on one host: the calling thread does them by
/// the board alone, without MPI, endpoint or progress thread; elements in device memory are brought
/// to the host before and back behind, by the lanes of messages. Reductions have the orders of all
/// others (decision 035): each member that wants the result reduces all inputs.
///
/// Thread: one at a time, in the same order on all members.
class HostBoard {
 public:
  /// `memory`: mapped by all members. `devices` of this member's node outlive it. `places`: the
  /// members in the order of places, if that has the bracket of as many ranks
  /// (ReductionOrder::is_balanced()); otherwise none, and reductions in that order are not done
  /// here.
  HostBoard(p2p::HostRegion memory, std::int32_t members, std::int32_t own,
            std::vector<std::int32_t> places, Board::Patience patience, RankDevices& devices);

  /// What members() need.
  [[nodiscard]] static std::size_t bytes_for(std::int32_t members) {
    return Board::bytes_for(members);
  }

  /// Whether a call that was checked is done here: alike on all members whose calls fit together.
  [[nodiscard]] bool takes(const Call& call) const;
  /// Throws Error(usage) for types that elements cannot be received in. Before run().
  void check_types(const Call& call);
  /// Does it. `seal`: as messages have it. Throws BoardMisfit, and what Patience::now_and_then
  /// does; the board cannot be used afterwards.
  void run(const Call& call, std::uint64_t seal);

 private:
  [[nodiscard]] CallMemory memory_of(const std::vector<Elements>& list, const Call& call,
                                     Side side);
  [[nodiscard]] std::span<const std::byte> take(std::int32_t member, std::uint64_t digest);
  void reduce(const Call& call, std::int32_t first, std::int32_t end, std::int64_t begin,
              std::int64_t bytes, std::byte* to, std::uint64_t digest);

  void bring(const CallMemory& memory) const;
  void take_back(const CallMemory& memory) const;

  p2p::HostRegion memory_;
  std::vector<std::int32_t> places_;
  Board board_;
  RankDevices& devices_;
  p2p::ShapeCache inputs_{false};
  p2p::ShapeCache outputs_{true};
};

}  // namespace heddle::collectives
