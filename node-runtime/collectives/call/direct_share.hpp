#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "node-runtime/collectives/call/direct_offer.hpp"
#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/collectives/schedule/direct.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/work.hpp"

namespace heddle::collectives {

/// Where a rank's memory is for the device that works on it.
struct RankSpots {
  p2p::Spot input{};
  p2p::Spot output{};
};
/// The spots of all ranks: `remote` has those that there are, each rank's input before its output.
[[nodiscard]] std::vector<RankSpots> spots_of(std::span<const DirectOffer> offers,
                                              std::span<const p2p::Spot> remote);

/// What one of several devices does for all ranks: a range of the elements of every job.
class DirectShare {
 public:
  /// `rows`: reductions take elements where they lie. Otherwise they follow each other.
  DirectShare(std::int64_t block_bytes, std::int64_t share, std::int64_t shares,
              const std::optional<CommonRows>& rows)
      : block_bytes_(block_bytes), share_(share), shares_(shares), rows_(rows) {}

  void queue_reductions(Stream& stream, std::span<const DirectJob> jobs,
                        std::span<const RankSpots> spots, const ReduceOperation& operation,
                        Scalar scalar) const;
  void queue_copies(Stream& stream, std::span<const DirectJob> jobs,
                    std::span<const RankSpots> spots) const;

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  [[nodiscard]] Range range(std::int64_t unit) const;
  [[nodiscard]] p2p::Spot spot(const DirectPlace& at, std::span<const RankSpots> spots,
                               std::int64_t begin) const;
  [[nodiscard]] std::vector<Destination> outputs(const DirectJob& job,
                                                 std::span<const RankSpots> spots,
                                                 std::int64_t begin) const;

  std::int64_t block_bytes_;
  std::int64_t share_;
  std::int64_t shares_;
  std::optional<CommonRows> rows_;
};

}  // namespace heddle::collectives
