#pragma once

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "node-runtime/memory/tile_store.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_faults.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/threads/engine.hpp"

/// Runs of a node whose devices have hardly any memory, to be compared with runs in core.
namespace heddle::testing {

/// More than any of these problems needs.
inline constexpr std::uint64_t plenty_bytes = std::uint64_t{64} << 20;

/// A node as a test wants it.
struct Machine {
  int devices = 0;
  std::uint64_t memory = plenty_bytes;  ///< of each device
  int workers = 2;
  NodeFaults faults = {};
  int streams = 2;
  int window = 4096;
  double watchdog_seconds = 20;
  std::string backend = "emulated";  ///< of the devices, if there are any
  std::string placement = "static";
};

[[nodiscard]] inline Config config_of(const Machine& m, const std::string& layout) {
  const std::string devices =
      m.devices == 0 ? "{backend: none}"
                     : fmt::format("{{backend: {}, per_node: {}, memory: {}, streams: {}}}",
                                   m.backend, m.devices, m.memory, m.streams);
  return Config::from_text(
      fmt::format("layout: {{{}}}\nruntime: {{watchdog_seconds: {}, "
                  "cpu_workers: {}, window: {}, placement: {}, devices: {}}}\n",
                  layout, m.watchdog_seconds, m.workers, m.window, m.placement, devices),
      "small devices");
}

/// What a run leaves.
struct Outcome {
  std::vector<double> elements;  ///< of all results, one after the other
  std::size_t largest_tile = 0;  ///< bytes
  std::uint64_t evictions = 0;
  std::uint64_t peak_device_bytes = 0;
  std::int64_t tasks_lent = 0;

  /// The least memory with which each of several devices can do it.
  [[nodiscard]] std::uint64_t least_bytes(int devices) const {
    return TileStore::least_device_bytes(largest_tile, static_cast<std::size_t>(devices));
  }

  /// Adds the elements of a matrix of one node.
  void add(Matrix<double> matrix) {
    const TileLayout l = matrix.layout();
    const std::size_t begin = elements.size();
    elements.resize(begin + static_cast<std::size_t>(matrix.rows() * matrix.columns()));
    matrix.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {  // tiles do not overlap
      for (std::int64_t b = 0; b < tile.columns; ++b) {
        for (std::int64_t a = 0; a < tile.rows; ++a) {
          const std::int64_t at = l.row_begin(i) + a + (l.column_begin(c) + b) * matrix.rows();
          elements[begin + static_cast<std::size_t>(at)] = tile(a, b);
        }
      }
    });
  }
  /// Looks at the sizes of what a node's jobs use.
  void measure(Node& node, std::initializer_list<Matrix<double>> matrices) {
    for (const Matrix<double>& m : matrices) {
      largest_tile = std::max(largest_tile, NodeInternals(node).store().largest_tile_bytes(m.id()));
    }
  }
};

/// What is done on a node.
struct Work {
  std::string name;
  std::string layout;  ///< of the configuration
  std::function<void(Node&, Outcome&)> run;
};

[[nodiscard]] inline Outcome outcome_of(const Work& work, const Machine& machine) {
  Node node(config_of(machine, work.layout), machine.faults);
  Outcome outcome;
  work.run(node, outcome);
  outcome.tasks_lent = NodeInternals(node).engine().tasks_lent();
  outcome.evictions = NodeInternals(node).store().evictions();
  outcome.peak_device_bytes = NodeInternals(node).store().peak_device_bytes();
  return outcome;
}

}  // namespace heddle::testing
