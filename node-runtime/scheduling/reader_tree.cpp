#include "node-runtime/scheduling/reader_tree.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/assert.hpp"

namespace heddle {
namespace {

/// Simulated Cholesky of 65,536 with tiles of 1024, a node on each host: on a 4 x 4 grid, where six
/// nodes read a version, a chain is 12 % slower than sending it six times, on 3 x 5 it is 9 %
/// faster, and from seven readers on always (bench/results/2026-11-30-readers.md).
constexpr std::int32_t flat_max_usual = 6;

}  // namespace

ReaderTree::ReaderTree(std::vector<std::int32_t> hosts, const Shape& shape)
    : hosts_(std::move(hosts)), shape_(shape) {
  HEDDLE_CHECK(!hosts_.empty());
  leaders_.resize(static_cast<std::size_t>(*std::max_element(hosts_.begin(), hosts_.end())) + 1);
}

ReaderTree ReaderTree::of(ReaderWay way, std::vector<std::int32_t> hosts) {
  switch (way) {
    case ReaderWay::home:
      std::iota(hosts.begin(), hosts.end(), 0);
      return {std::move(hosts), {.flat_max = std::numeric_limits<std::int32_t>::max()}};
    case ReaderWay::tree:
      return {std::move(hosts), {}};
    case ReaderWay::automatic:
      break;
  }
  return {std::move(hosts), {.flat_max = flat_max_usual}};
}

void ReaderTree::find_leaders(std::span<const protocol::Reader> readers, NodeId home) {
  ++turn_;
  order_.clear();
  leader_of(home) = {turn_, home};
  for (const protocol::Reader& reader : readers) {
    Leader& leader = leader_of(reader.node);
    if (leader.turn == turn_) continue;
    leader = {turn_, reader.node};
    order_.push_back(reader.node);
  }
}

protocol::Route ReaderTree::route(std::span<const protocol::Reader> readers, NodeId home,
                                  NodeId node) {
  find_leaders(readers, home);
  const auto leaders = static_cast<std::int32_t>(order_.size());
  const bool is_flat = leaders <= shape_.flat_max;
  const std::size_t chains = leaders <= shape_.one_chain_max ? 1 : 2;
  protocol::Route route{home, {}};
  std::size_t leader = 0;
  for (const protocol::Reader& reader : readers) {
    NodeId from = leader_of(reader.node).node;
    if (from == reader.node) {
      from = is_flat || leader < chains ? home : order_[leader - chains];
      ++leader;
    }
    if (from == node) route.to.push_back(reader);
    if (reader.node == node) route.from = from;
  }
  return route;
}

}  // namespace heddle
