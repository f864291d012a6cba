#include "apps/warm_up.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>

#include "algorithms/io/agreement.hpp"
#include "base/error.hpp"
#include "node-runtime/node_facts.hpp"

namespace heddle {
namespace {

std::int64_t bytes_of(const TileLayout& layout, TileRow i, TileColumn c) {
  return layout.row_count(i) * layout.column_count(c) * static_cast<std::int64_t>(sizeof(double));
}

/// Whether each device of this node has room for its tiles and their spares, and for as much again
/// that a job takes for tiles on their way.
bool has_room(Node& node, std::uint64_t spare, const std::vector<MatrixSpec>& specs) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(node.facts().devices) + 1, 0);
  for (const MatrixSpec& spec : specs) {
    const TileLayout& l = spec.layout;
    std::int64_t largest = 0;
    for (TileColumn c{0}; c < l.end_column(); ++c) {
      for (TileRow i{0}; i < l.end_row(); ++i) {
        const Location home = spec.distribution.home(l, i, c);
        if (home.node.value() != node.rank()) continue;
        largest = std::max(largest, bytes_of(l, i, c));
        bytes[static_cast<std::size_t>(home.place.value())] += bytes_of(l, i, c);
      }
    }
    for (std::int64_t& at_place : bytes) at_place += spec.spare_count * largest;
  }
  const std::int64_t most = *std::max_element(bytes.begin() + 1, bytes.end());
  return 2 * static_cast<std::uint64_t>(most) <= spare;
}

}  // namespace

void WarmUp::begin(Node& node, std::uint64_t spare, const std::vector<MatrixSpec>& specs,
                   const std::function<JobSpec()>& make) {
  if (node.facts().devices == 0) return;
  if (reduce(node, has_room(node, spare, specs) ? 1 : 0, Reduction::minimum) == 0) return;
  try {
    job_ = node.submit(make());
  } catch (const AgreedError& error) {
    // All nodes know that one has no memory for it: the factorization begins cold.
    if (error.code() != ErrorCode::usage) throw;
  }
}

WarmUp::~WarmUp() {
  try {
    end();
  } catch (const std::exception&) {
    // The node has failed, as whoever destroys this knows.
  }
}

void WarmUp::end() {
  if (job_) static_cast<void>(job_->wait());
  job_.reset();
}

std::int64_t WarmUp::columns_for(const Distribution& d) {
  // A device updates what comes two tile columns behind one of another.
  return std::max<std::int64_t>(d.grid_rows, std::int64_t{d.grid_columns} * d.devices) + 2;
}

}  // namespace heddle
