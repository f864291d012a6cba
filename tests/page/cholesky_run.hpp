#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "node-runtime/trace/node_trace.hpp"
#include "node-runtime/trace/record.hpp"

namespace heddle::page::test {

/// The traces of a tile Cholesky on several nodes, tiles dealt out by columns: each task begins
/// when what it reads is there and its worker is free, and takes about 100 us with noise, as
/// measured times have. Tasks of a node go to its workers in turn.
class CholeskyRun {
 public:
  CholeskyRun(std::int32_t tiles, std::int32_t nodes, std::int32_t workers)
      : tiles_(tiles), ready_ns_(cells()), versions_(cells()), here_(cells()) {
    for (std::int32_t n = 0; n < nodes; ++n) {
      trace::NodeTrace& node = nodes_.emplace_back();
      node.node = NodeId(n);
      node.node_count = nodes;
      node.info.metadata = R"({"run":"a"})";
      node.names = {"potrf", "trsm", "syrk", "gsmm"};
      node.matrices = {{0, "A", tiles, tiles}};
      for (std::int32_t w = 0; w < workers; ++w) {
        node.threads.push_back({.name = "worker " + std::to_string(w), .sort_order = 10 + w});
      }
      node.threads.push_back({.name = "mpi", .sort_order = 3000});
    }
    free_ns_.assign(nodes_.size(), std::vector<std::int64_t>(static_cast<std::size_t>(workers)));
    for (std::int32_t k = 0; k < tiles; ++k) {
      task(0, k, {{k, k}});
      for (std::int32_t i = k + 1; i < tiles; ++i) task(1, k, {{i, k}, {k, k}});
      for (std::int32_t j = k + 1; j < tiles; ++j) {
        task(2, k, {{j, j}, {j, k}});
        for (std::int32_t i = j + 1; i < tiles; ++i) task(3, k, {{i, j}, {i, k}, {j, k}});
      }
    }
  }

  [[nodiscard]] const std::vector<trace::NodeTrace>& nodes() const { return nodes_; }

 private:
  struct At {
    std::int32_t row = 0;
    std::int32_t column = 0;
  };

  [[nodiscard]] std::size_t cells() const {
    return static_cast<std::size_t>(tiles_) * static_cast<std::size_t>(tiles_);
  }
  [[nodiscard]] std::int32_t index(At at) const { return at.row + at.column * tiles_; }
  template <class T>
  [[nodiscard]] T& of(std::vector<T>& all, At at) const {
    return all[static_cast<std::size_t>(index(at))];
  }

  /// The first tile is changed, the others are read.
  void task(std::uint32_t kernel, std::int32_t step, const std::vector<At>& tiles) {
    const auto owner = static_cast<std::size_t>(tiles[0].column) % nodes_.size();
    trace::NodeTrace& node = nodes_[owner];
    const std::size_t worker = turn_++ % free_ns_[owner].size();
    std::int64_t& now = free_ns_[owner][worker];
    std::int64_t start = now + 300 + static_cast<std::int64_t>(random_() % 400);
    trace::AccessRecord accesses;
    accesses.fill({.kind = trace::RecordKind::none});
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      bring(tiles[i], owner);
      start = std::max(start, of(ready_ns_, tiles[i]));
      accesses.at(i) = {.mode = i == 0 ? trace::AccessMode::read_write : trace::AccessMode::read,
                        .tile = {0, index(tiles[i])},
                        .version = Version(of(versions_, tiles[i]))};
    }
    std::normal_distribution<double> spread(100e3, 5e3);
    now = start + std::max<std::int64_t>(1000, static_cast<std::int64_t>(spread(random_)));
    node.threads[worker].records.push_back(
        trace::Record::of(trace::TaskRecord{.access_count = static_cast<std::uint8_t>(tiles.size()),
                                            .kernel = trace::NameId(kernel),
                                            .job = 0,
                                            .order = order_++,
                                            .start_ns = start,
                                            .end_ns = now,
                                            .tile = {0, index(tiles[0])},
                                            .priority = tiles_ - step}));
    node.threads[worker].records.push_back(trace::Record::of(accesses));
    of(ready_ns_, tiles[0]) = now;
    ++of(versions_, tiles[0]);
    of(here_, tiles[0]) = std::uint64_t{1} << owner;
  }

  /// A message, unless the node has this version.
  void bring(At tile, std::size_t node) {
    std::uint64_t& here = of(here_, tile);
    if (of(versions_, tile) == 0 || (here >> node & 1U) != 0) return;
    here |= std::uint64_t{1} << node;
    const auto home = static_cast<std::size_t>(tile.column) % nodes_.size();
    trace::MessageRecord record{.job = 0,
                                .tile = {0, index(tile)},
                                .version = Version(of(versions_, tile)),
                                .peer = NodeId(static_cast<std::int32_t>(node)),
                                .bytes = 320000,
                                .start_ns = of(ready_ns_, tile),
                                .end_ns = of(ready_ns_, tile) + 40'000};
    nodes_[home].threads.back().records.push_back(trace::Record::of(record));
    record.kind = trace::RecordKind::receive;
    record.peer = NodeId(static_cast<std::int32_t>(home));
    nodes_[node].threads.back().records.push_back(trace::Record::of(record));
  }

  std::int32_t tiles_;
  std::vector<trace::NodeTrace> nodes_;
  std::vector<std::vector<std::int64_t>> free_ns_;  ///< by node and worker
  std::vector<std::int64_t> ready_ns_;              ///< by tile
  std::vector<std::int32_t> versions_;
  std::vector<std::uint64_t> here_;  ///< nodes that have the newest version, a bit each
  std::mt19937_64 random_{1};
  std::uint64_t order_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace heddle::page::test
