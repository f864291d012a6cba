#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fmt/core.h>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "node-runtime/collectives/call/shared_buffer.hpp"
#include "node-runtime/collectives/call/tree_buffers.hpp"
#include "tests/collectives/call/device_ranks.hpp"

/// Operations of ranks by buffers on devices, with every bit checked.
namespace heddle::collectives {

struct Case {
  DeviceWay way = DeviceWay::gsb;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int32_t ranks = 4;
  std::int32_t root = 0;
  std::size_t count = 1000;
  std::int64_t fragment = 800;  ///< bytes
  Copies copies = Copies::by_speed;
  bool is_in_place = false;
  std::set<std::int32_t> on_host{};
  std::set<std::int32_t> refuses{};
  bool is_shareable = true;
  std::function<bool(const Event&)> is_stuck = [](const Event&) { return false; };
};

/// Does the operation on all ranks, and returns what they say of it.
inline std::vector<std::string> run(const Case& of, std::uint32_t seed) {
  const auto owner = make_device();
  Device& device = *owner;
  OneDevice devices(device);
  Table table(device, seed);
  table.refuses = of.refuses;
  table.is_shareable = of.is_shareable;
  table.is_stuck = of.is_stuck;
  const bool reduces = of.kind != CollectiveKind::broadcast;
  std::vector<NodeId> nodes;
  for (std::int32_t r = 0; r < of.ranks; ++r) nodes.emplace_back(r);
  std::vector<std::unique_ptr<RankCourier>> couriers;
  std::vector<std::unique_ptr<Doubles>> inputs;
  std::vector<std::unique_ptr<Doubles>> outputs;
  std::vector<std::shared_ptr<Errand>> errands;
  const auto known = std::make_shared<KnownMemory>();
  for (std::int32_t r = 0; r < of.ranks; ++r) {
    Call call;
    call.kind = of.kind;
    call.root = of.root;
    const bool is_root = r == of.root;
    const bool is_host = of.on_host.contains(r);
    std::vector<double> own(of.count);
    for (std::size_t i = 0; i < of.count; ++i) own[i] = value(r, i);
    inputs.push_back(std::make_unique<Doubles>(device, own, is_host));
    outputs.push_back(
        std::make_unique<Doubles>(device, std::vector<double>(of.count, -1), is_host));
    const bool has_in = reduces || is_root;
    const bool has_out = of.kind == CollectiveKind::all_reduce ||
                         (of.kind == CollectiveKind::reduce ? is_root : !is_root);
    DirectMemory memory;
    memory.home = {&devices, is_host ? std::nullopt : std::optional(p2p::LaneId{0})};
    memory.block_bytes = static_cast<std::int64_t>(of.count * sizeof(double));
    if (has_out) memory.output = outputs.back()->address();
    if (of.is_in_place) {
      outputs.back() = std::make_unique<Doubles>(device, own, is_host);
      memory.output = outputs.back()->address();
      memory.input = memory.output;
    } else if (has_in) {
      memory.input = inputs.back()->address();
    }
    Task task;
    task.scalar = Scalar::float64;
    const auto make = of.way == DeviceWay::gsb ? make_shared_buffer_way : make_tree_buffer_way;
    errands.push_back(
        make(call, {Rank{r}, nodes, known}, memory, {Rank{of.root}, of.copies, of.fragment}, task));
    couriers.push_back(std::make_unique<RankCourier>(
        table, r, [errand = errands.back().get()](std::int64_t ticket) { errand->ended(ticket); }));
  }
  std::vector<std::int32_t> order;
  for (std::int32_t r = 0; r < of.ranks; ++r) order.push_back(r);
  std::ranges::shuffle(order, std::mt19937(seed));
  // Ranks come while others are at work.
  for (const std::int32_t r : order) {
    errands[static_cast<std::size_t>(r)]->begin(*couriers[static_cast<std::size_t>(r)]);
    for (std::uint32_t k = 0; k < seed % 9; ++k) static_cast<void>(table.step());
  }
  while (table.step()) {
  }
  std::vector<std::string> said;
  for (std::int32_t r = 0; r < of.ranks; ++r) {
    const Errand& errand = *errands[static_cast<std::size_t>(r)];
    EXPECT_TRUE(errand.is_over()) << "rank " << r << " waits for " << errand.waits_for();
    said.push_back(errand.describe());
    const bool is_root = r == of.root;
    const bool has_out = of.kind == CollectiveKind::all_reduce ||
                         (of.kind == CollectiveKind::reduce ? is_root : !is_root);
    if (!has_out) continue;
    const std::vector<double>& got = outputs[static_cast<std::size_t>(r)]->get();
    for (std::size_t i = 0; i < of.count; ++i) {
      const double wanted = reduces ? bracket(0, of.ranks, i) : value(of.root, i);
      if (std::bit_cast<std::uint64_t>(got[i]) == std::bit_cast<std::uint64_t>(wanted)) continue;
      ADD_FAILURE() << "rank " << r << ", element " << i << ": " << got[i] << ", not " << wanted;
      break;
    }
  }
  return said;
}

/// Seeded cases of all kinds: the same bits whatever ends first, and in bounded steps.
inline void expect_the_same_bits(DeviceWay way) {
  std::mt19937 random(5);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    Case of;
    of.way = way;
    of.kind = std::array{CollectiveKind::all_reduce, CollectiveKind::reduce,
                         CollectiveKind::broadcast}[seed % 3];
    of.ranks = 2 + below(6);
    of.root =
        of.kind == CollectiveKind::all_reduce ? 0 : below(static_cast<std::uint32_t>(of.ranks));
    of.count = static_cast<std::size_t>(1 + below(seed % 2 == 0 ? 20 : 3000));
    of.fragment = 8 * (1 + below(400));
    of.copies = static_cast<Copies>(below(copies_names.size()));
    of.is_in_place = of.kind == CollectiveKind::all_reduce && below(2) == 0;
    for (std::int32_t r = 0; r < of.ranks; ++r) {
      if (below(4) == 0) of.on_host.insert(r);
      if (below(6) == 0) of.refuses.insert(r);
    }
    const std::int32_t stuck = below(3);
    if (stuck == 1) of.is_stuck = [](const Event& e) { return e.is_mapped && e.rank == 1; };
    if (stuck == 2) of.is_stuck = [](const Event& e) { return e.is_elements && e.rank % 2 == 1; };
    SCOPED_TRACE(fmt::format("seed {}: {} of {} ranks, root {}, {} doubles, fragments of {}, {}",
                             seed, name_of(of.kind), of.ranks, of.root, of.count, of.fragment,
                             name_of(of.copies)));
    static_cast<void>(run(of, seed));
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace heddle::collectives
