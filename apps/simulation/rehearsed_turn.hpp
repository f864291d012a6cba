#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/simulation/fitted_times.hpp"

namespace heddle {

/// What tasks of a kind took.
struct RehearsedTime {
  double seconds = 0;
  double squares = 0;  ///< the sum of each one's seconds, squared
  std::int64_t count = 0;

  void add(const RehearsedTime& other) {
    seconds += other.seconds;
    squares += other.squares;
    count += other.count;
  }
  void add_task(double took) { add({took, took * took, 1}); }
};

/// By worker, those of a process one after the other, and by kind.
using RehearsedTurn = std::vector<std::vector<RehearsedTime>>;

/// The sums over all workers, by kind; `kinds`: how many kinds there are.
[[nodiscard]] std::vector<RehearsedTime> sums_of(const RehearsedTurn& turn, std::size_t kinds);

/// By turn, what each worker took over what is usual for its tasks (`fitted`, of which groups are
/// turns), beside the turn's pace; only workers that ran some, and only turns that had such.
///
/// Tasks of a kind are not alike either, and a worker has few in a turn: as much of what workers
/// differ by as is to be expected from that, were all workers alike, is left out.
[[nodiscard]] std::vector<std::vector<double>> worker_paces(std::span<const RehearsedTurn> turns,
                                                            const FittedTimes& fitted);

}  // namespace heddle
