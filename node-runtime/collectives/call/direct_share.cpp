#include "node-runtime/collectives/call/direct_share.hpp"

#include <algorithm>

#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {
namespace {

/// Shares are cut at multiples of so many elements (copies: bytes), so that each begins at a word
/// of 16 bytes where the whole does.
constexpr std::int64_t elements_at_once = 16;

}  // namespace

std::vector<RankSpots> spots_of(std::span<const DirectOffer> offers,
                                std::span<const p2p::Spot> remote) {
  std::vector<RankSpots> spots(offers.size());
  std::size_t next = 0;
  for (std::size_t r = 0; r < offers.size(); ++r) {
    if (offers[r].has_input) spots[r].input = remote[next++];
    if (offers[r].has_output) spots[r].output = remote[next++];
  }
  return spots;
}

DirectShare::Range DirectShare::range(std::int64_t unit) const {
  const std::int64_t units = (block_bytes_ + unit - 1) / unit;
  return {units * share_ / shares_ * unit,
          std::min(block_bytes_, units * (share_ + 1) / shares_ * unit)};
}

p2p::Spot DirectShare::spot(const DirectPlace& at, std::span<const RankSpots> spots,
                            std::int64_t begin) const {
  const RankSpots& of = spots[static_cast<std::size_t>(at.rank.value())];
  p2p::Spot found = at.is_output ? of.output : of.input;
  if (!rows_) found.address += at.block * block_bytes_ + begin;
  return found;
}

std::vector<Destination> DirectShare::outputs(const DirectJob& job,
                                              std::span<const RankSpots> spots,
                                              std::int64_t begin) const {
  std::vector<Destination> to;
  for (const DirectPlace& at : job.to) {
    const p2p::Spot found = spot(at, spots, begin);
    to.push_back({found.address, found.device});
  }
  return to;
}

void DirectShare::queue_reductions(Stream& stream, std::span<const DirectJob> jobs,
                                   std::span<const RankSpots> spots,
                                   const ReduceOperation& operation, Scalar scalar) const {
  const std::int64_t element = operation.element_bytes(scalar);
  const auto [begin, end] = range(elements_at_once * element);
  if (end <= begin) return;
  for (const DirectJob& job : jobs) {
    std::vector<Source> from;
    for (const DirectPlace& at : job.from) {
      const p2p::Spot found = spot(at, spots, begin);
      from.push_back({found.address, found.device});
    }
    ReductionOptions options;
    if (rows_) {
      // All inputs of a job are the same block, as are its outputs.
      options.inputs = {rows_->input, job.from.front().block * block_bytes_ + begin};
      options.outputs = {rows_->output, job.to.front().block * block_bytes_ + begin};
    }
    queue_reduction(stream, operation, scalar, outputs(job, spots, begin), from,
                    (end - begin) / element, options);
  }
}

void DirectShare::queue_copies(Stream& stream, std::span<const DirectJob> jobs,
                               std::span<const RankSpots> spots) const {
  const auto [begin, end] = range(elements_at_once);
  if (end <= begin) return;
  for (const DirectJob& job : jobs) {
    const p2p::Spot from = spot(job.from.front(), spots, begin);
    const std::vector<Destination> to = outputs(job, spots, begin);
    const Source source{from.address, from.device};
    if (to.size() == 1) {
      stream.copy(to.front(), source, static_cast<std::size_t>(end - begin));
    } else {
      // With one input every operation is a copy.
      queue_reduction(stream, ReduceOperation::bit_or(), Scalar::uint8, to, std::span(&source, 1),
                      end - begin);
    }
  }
}

}  // namespace heddle::collectives
