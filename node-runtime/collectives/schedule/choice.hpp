#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node-runtime/collectives/schedule/all_gather.hpp"
#include "node-runtime/collectives/schedule/all_to_all.hpp"
#include "node-runtime/collectives/schedule/broadcast.hpp"
#include "node-runtime/collectives/schedule/device_rates.hpp"
#include "node-runtime/collectives/schedule/levels.hpp"
#include "node-runtime/collectives/schedule/reduction_order.hpp"

/// Which algorithm an operation takes: predicted times of all that could be taken, at each level
/// (000 sections 5.1 and 5.2.2). Pure, and the same on all ranks for the same arguments.
namespace heddle::collectives {

enum class CollectiveKind : std::uint8_t {
  barrier,
  broadcast,
  scatter,
  gather,
  all_gather,
  reduce,
  all_reduce,
  reduce_scatter,
  all_to_all,
  scan,
  exclusive_scan,
};
[[nodiscard]] std::string_view name_of(CollectiveKind kind);

/// Messages between two ranks, of host memory. Times in seconds.
struct LevelRates {
  double short_s = 0;  ///< a message of at most short_bytes, beside its bytes
  double short_bytes_per_s = 1;
  std::int64_t short_bytes = 0;
  double long_s = 0;  ///< any longer one
  double long_bytes_per_s = 1;

  [[nodiscard]] double seconds(double bytes) const;
};
struct CollectiveRates {
  std::array<LevelRates, 4> levels;  ///< by Level
  double reduced_bytes_per_s = 1;    ///< of one input, on one rank
  DeviceRates devices{};
};

/// What an operation's algorithm depends on.
struct CollectiveQuery {
  CollectiveKind kind = CollectiveKind::barrier;
  /// Of the message; of operations with a block for each rank, of one block. Not known on all
  /// ranks: 0, and is_known is false.
  double bytes = 0;
  bool is_known = true;
  std::array<std::int32_t, 4> sizes{1, 1, 1, 1};  ///< members of the largest group of each level
  std::int32_t ranks = 1;
  /// Of a reduction: values_sent() in its order.
  ValuesSent values = one_value();

  [[nodiscard]] static constexpr ValuesSent one_value() {
    ValuesSent values{};
    for (auto& of_level : values) of_level.fill(1);
    return values;
  }
};

/// How ranks on one host that have devices may do an operation in place of a schedule's steps.
enum class DeviceWay : std::uint8_t {
  direct,  ///< one device reads and writes the memory of all ranks
  gsb,     ///< ranks copy to and from a buffer of one rank's device
  btb,     ///< ranks copy to and from buffers of half of them, along a tree
};
inline constexpr std::array device_ways{DeviceWay::direct, DeviceWay::gsb, DeviceWay::btb};
[[nodiscard]] std::string_view name_of(DeviceWay way);

/// What callers ask for.
struct CollectiveOverrides {
  std::optional<Tree> tree;         ///< at all levels
  std::optional<LevelTrees> trees;  ///< by level
  std::optional<AllReduce> all_reduce;
  std::optional<AllToAll> all_to_all;
  std::optional<std::int64_t> fragment_bytes;
  std::optional<DeviceWay> device_way;
};
/// Reads the name of a tree, or of a way of all_reduce or all_to_all: "chain", "scatter_gather",
/// "bruck"; or a DeviceWay: "direct". Throws Error(usage) for another one.
[[nodiscard]] CollectiveOverrides overrides_of(std::string_view algorithm);

struct CollectiveChoice {
  LevelTrees trees{Tree::binomial, Tree::binomial, Tree::binomial, Tree::binomial};
  AllReduce all_reduce = AllReduce::reduce_broadcast;
  AllToAll all_to_all = AllToAll::pairwise;
  double fragment_bytes = 0;  ///< of a block; as large as that: it is not cut
  std::int32_t in_flight = 1;
  double seconds = 0;  ///< predicted
  /// Of a reduction: the order that is taken, and what it is to take in each one, by Order.
  Order order = Order::ranks;
  std::array<double, 2> seconds_in_order{};

  /// What else could have been taken.
  struct Candidate {
    std::string text;  ///< "host chain, fragments of 128 KiB"
    double seconds = 0;
  };
  std::vector<Candidate> considered;  ///< the fastest first

  /// The ways for memory of devices (device_ways.hpp), as if all ranks' elements were there: first
  /// what is taken. Empty: there are none here, or the caller has chosen.
  struct DeviceCandidate {
    std::string_view way;
    double seconds = 0;
    std::string_view lacks;  ///< why it cannot be taken; empty: it can
  };
  std::vector<DeviceCandidate> on_devices;
  bool is_on_device = false;  ///< this rank's elements are
  /// What it was to take by `way`, which is what Operation::way() says.
  [[nodiscard]] double seconds_by(std::string_view way) const;

  /// The first of them.
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] CollectiveChoice choose_collective(const CollectiveQuery& query,
                                                 const CollectiveRates& rates,
                                                 const CollectiveOverrides& overrides = {});

/// What a reduction's order depends on beside its query.
struct OrderQuery {
  Order wanted = Order::ranks;
  /// Every order gives the same bits: the faster one is taken.
  bool is_exact = false;
  /// values_sent() by Order. Null: the operation is no reduction, or keeps the order of ranks.
  const std::array<ValuesSent, 2>* values = nullptr;
};
/// choose_collective() in the order that is wanted, or the faster one; with the predicted times of
/// both. query.values does not count where there are values by Order.
[[nodiscard]] CollectiveChoice choose_in_order(CollectiveQuery query, const CollectiveRates& rates,
                                               const CollectiveOverrides& overrides,
                                               const OrderQuery& order);

}  // namespace heddle::collectives
