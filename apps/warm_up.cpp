#include "apps/warm_up.hpp"

#include <algorithm>
#include <cstdint>

#include "algorithms/io/agreement.hpp"
#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"

namespace heddle {
namespace {

std::int64_t bytes_of(const TileLayout& layout, TileRow i, TileColumn c) {
  return layout.row_count(i) * layout.column_count(c) * static_cast<std::int64_t>(sizeof(double));
}

/// Whether each device of this node has room for its tiles, and for as much again that a job takes
/// for tiles on their way.
bool has_room(Node& node, const std::vector<MatrixSpec>& specs) {
  TileStore& store = NodeInternals(node).store();
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(store.places()), 0);
  std::int64_t largest = 1;
  for (const MatrixSpec& spec : specs) {
    const TileLayout& l = spec.layout;
    for (TileColumn c{0}; c < l.end_column(); ++c) {
      for (TileRow i{0}; i < l.end_row(); ++i) {
        const Location home = spec.distribution.home(l, i, c);
        largest = std::max(largest, bytes_of(l, i, c));
        if (home.node.value() != node.rank()) continue;
        bytes[static_cast<std::size_t>(home.place.value())] += bytes_of(l, i, c);
      }
    }
  }
  for (std::int32_t p = 1; p < store.places(); ++p) {
    const std::int64_t wanted = bytes[static_cast<std::size_t>(p)];
    const auto block = static_cast<std::size_t>(largest);
    if (store.blocks_available(PlaceId{p}, block) * largest < 2 * wanted) return false;
  }
  return true;
}

}  // namespace

void WarmUp::begin(Node& node, const std::vector<MatrixSpec>& specs,
                   const std::function<JobSpec()>& make) {
  if (node.facts().devices == 0) return;
  if (reduce(node, has_room(node, specs) ? 1 : 0, Reduction::minimum) == 0) return;
  job_ = node.submit(make());
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
