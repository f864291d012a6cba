#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/reductions/measures.hpp"
#include "base/index.hpp"
#include "node-runtime/node.hpp"

/// Sums over the tiles of distributed matrices, with the same bits each time.
namespace heddle {

/// Sums over the tiles of one node. Whichever thread comes to a tile first, the tiles' parts are
/// added in the order of the tiles: a norm has the same bits each time.
template <class Number>
class Sums {
 public:
  explicit Sums(std::int64_t count) : sums_(static_cast<std::size_t>(count), 0) {}

  /// What a tile adds to the sums from `first` on; one tile's parts in the order of the calls. Any
  /// thread.
  void add(TileRow i, TileColumn c, std::int64_t first, std::span<const Number> numbers) {
    const std::lock_guard lock(mutex_);
    parts_.push_back({i, c, static_cast<std::size_t>(first), numbers_.size(), numbers.size()});
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  }

  /// The sums of this node, once all tiles were visited.
  [[nodiscard]] std::vector<Number> total() {
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& one, const Part& other) {
      return std::pair(one.column, one.row) < std::pair(other.column, other.row);
    });
    for (const Part& part : parts_) {
      for (std::size_t k = 0; k < part.count; ++k)
        sums_[part.first + k] += numbers_[part.begin + k];
    }
    return std::move(sums_);
  }

 private:
  struct Part {
    TileRow row;
    TileColumn column;
    std::size_t first;  ///< of the sums
    std::size_t begin;  ///< of the numbers
    std::size_t count;
  };

  std::mutex mutex_;
  std::vector<Part> parts_;
  std::vector<Number> numbers_;
  std::vector<Number> sums_;
};

inline std::vector<double> zeros(std::int64_t count) {
  return std::vector<double>(static_cast<std::size_t>(count), 0.0);
}

/// The sums of `sums_of(unit)` over all nodes, of elements times `unit`. Where a sum leaves the
/// range of doubles, all are summed once more with a small unit, on all nodes, which see the same
/// sums.
template <class SumsOf>
std::vector<Norm> sums_in_range(const SumsOf& sums_of) {
  constexpr double small_unit = 0x1p-64;  // no matrix has more elements than its reciprocal
  double unit = 1;
  std::vector<double> sums = sums_of(unit);
  const auto is_finite = [](double sum) { return std::isfinite(sum); };
  if (!std::all_of(sums.begin(), sums.end(), is_finite)) {
    unit = small_unit;
    sums = sums_of(unit);
  }
  std::vector<Norm> norms(sums.begin(), sums.end());
  for (Norm& norm : norms) norm /= unit;
  return norms;
}

inline std::vector<double> sum_over_nodes(Node& node, Sums<double>& sums) {
  std::vector<double> all = sums.total();
  node.all_reduce(all, Reduction::sum);
  return all;
}

}  // namespace heddle
