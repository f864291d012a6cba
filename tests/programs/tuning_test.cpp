#include "node-runtime/tuning.hpp"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/qr/layout.hpp"
#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node_facts.hpp"

/// What `auto` means with and without measurements.
namespace heddle {
namespace {

NodeFacts workers(std::int32_t count) {
  NodeFacts facts;
  facts.cpu_workers = facts.cpu_workers_of_all = count;
  return facts;
}

NodeFacts gpus(std::int32_t count) {
  NodeFacts facts = workers(16);
  facts.devices = count;
  facts.distribution.devices = count;
  facts.device_backend = "cuda";
  facts.device_name = "Loom GPU";
  return facts;
}

/// The larger a tile, the more a flop costs: the smallest ones are best.
KernelTimes times_for_small_tiles() {
  KernelTimes times;
  for (const std::int64_t b : {160, 320}) {
    const double us = 1e-4 * static_cast<double>(b * b * b) * static_cast<double>(b);
    for (const Kernel* kernel : {&kernel::potrf, &kernel::trsm, &kernel::syrk, &kernel::gsmm}) {
      times.push_back({kernel, b, b, 0, us});
    }
  }
  return times;
}

Measurements of_cpu(const KernelTimes& times) {
  Measurements measured;
  measured.cpu = CpuMeasurement{2, times, times};
  return measured;
}

Measurements of_gpu(const KernelTimes& times) {
  Measurements measured;
  DeviceMeasurement device;
  device.backend = "cuda";
  device.name = "Loom GPU";
  device.kernels = times;
  device.copies = {50, 50, 90, {}};
  measured.devices.push_back(device);
  return measured;
}

}  // namespace

TEST(Tuning, takes_tiles_from_the_measurements_of_the_cpu) {
  NodeFacts facts = workers(2);
  const std::int64_t ruled = choose_layout(4000, 4000, {}, facts).tile;
  EXPECT_NE(ruled, 160);
  EXPECT_NE(origin_of_sizes({}, facts).find("`heddle tune`"), std::string::npos);

  facts.tuning.measured = of_cpu(times_for_small_tiles());

  EXPECT_EQ(choose_layout(4000, 4000, {}, facts).tile, 160);
  EXPECT_EQ(origin_of_sizes({}, facts), "by the machine file's measurements of the CPU");
  // Of the CPU's they say nothing about devices.
  NodeFacts with_gpu = gpus(1);
  with_gpu.tuning.measured = facts.tuning.measured;
  EXPECT_EQ(choose_layout(40000, 40000, {}, with_gpu).tile,
            choose_layout(40000, 40000, {}, gpus(1)).tile);
}

TEST(Tuning, prefers_the_configuration_to_the_file_and_the_file_to_its_measurements) {
  NodeFacts facts = workers(2);
  facts.tuning.measured = of_cpu(times_for_small_tiles());
  facts.tuning.fixed.tile = 224;
  facts.tuning.fixed.small = 32;
  EXPECT_EQ(choose_layout(4000, 4000, {}, facts).tile, 224);
  EXPECT_EQ(choose_layout(4000, 4000, {}, facts).small, 32);
  EXPECT_EQ(choose_qr_cut(4000, 4000, {}, facts).layout.tile, 224);
  EXPECT_EQ(origin_of_sizes({}, facts), "as the machine file says");

  config::Layout wanted;
  wanted.tile = 96;
  EXPECT_EQ(choose_layout(4000, 4000, wanted, facts).tile, 96);
  EXPECT_EQ(origin_of_sizes(wanted, facts), "as the configuration says");
}

TEST(Tuning, keeps_strips_and_blocks_of_the_file_within_the_tile) {
  NodeFacts facts = gpus(1);
  facts.tuning.fixed.strip = 10000;
  facts.tuning.fixed.inner = 10000;
  facts.tuning.fixed.small = 48;
  config::Layout wanted;
  wanted.tile = 500;
  const TileLayout layout = choose_layout(4000, 4000, wanted, facts);
  EXPECT_EQ(layout.strip, 480);
  EXPECT_EQ(choose_qr_cut(4000, 4000, wanted, facts).layout.inner, 500);
  // Without devices there is nothing to keep a strip from.
  EXPECT_EQ(choose_layout(4000, 4000, {}, workers(2)).strip, 0);
}

TEST(Tuning, divides_tiles_only_where_it_is_wanted) {
  const NodeFacts facts = workers(8);
  config::Layout wanted;
  EXPECT_EQ(choose_layout(8000, 8000, wanted, facts).fine, 0);
  wanted.hierarchy = config::Hierarchy::on;
  const TileLayout layout = choose_layout(8000, 8000, wanted, facts);
  EXPECT_EQ(layout.fine, layout.small);
  EXPECT_GE(layout.tile, 2 * layout.fine);
  EXPECT_EQ(choose_qr_cut(8000, 8000, wanted, facts).layout.fine, layout.fine);
  // A small size that does not divide the tile is as good as any.
  wanted.tile = 500;
  wanted.small = 96;
  EXPECT_EQ(choose_layout(8000, 8000, wanted, facts).fine, 96);
  wanted.small = 501;
  EXPECT_THROW(static_cast<void>(choose_layout(8000, 8000, wanted, facts)), Error);
  wanted.small = 7;  // 72 parts a side
  EXPECT_THROW(static_cast<void>(choose_layout(8000, 8000, wanted, facts)), Error);
  wanted.small = 500;
  EXPECT_EQ(choose_layout(8000, 8000, wanted, facts).fine, 0) << "a tile of one part is whole";
  wanted.tile.reset();
  EXPECT_EQ(choose_layout(500, 300, wanted, facts).fine, 500);
  EXPECT_THROW(static_cast<void>(choose_layout(499, 300, wanted, facts)), Error);
}

TEST(Tuning, divides_tiles_into_equal_parts_near_the_usual_size) {
  config::Layout wanted;
  wanted.hierarchy = config::Hierarchy::on;
  for (const auto& [tile, small] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {100, 0}, {256, 0}, {320, 160}, {960, 192}, {1000, 200}, {2048, 187}}) {
    wanted.tile = tile;
    EXPECT_EQ(choose_layout(8000, 8000, wanted, workers(8)).fine, small) << tile;
  }
}

TEST(Tuning, divides_tiles_into_smaller_parts_for_many_workers) {
  config::Layout wanted;
  wanted.hierarchy = config::Hierarchy::on;
  for (const auto& [tile, small] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {100, 0}, {256, 86}, {480, 96}, {960, 120}, {2048, 187}}) {
    wanted.tile = tile;
    EXPECT_EQ(choose_layout(8000, 8000, wanted, workers(62)).fine, small) << tile;
  }
  wanted.tile = 960;
  EXPECT_EQ(choose_layout(8000, 8000, wanted, workers(25)).fine, 192);
  EXPECT_EQ(choose_layout(8000, 8000, wanted, workers(26)).fine, 160);
  // The workers of one node share a tile.
  NodeFacts several = workers(64);
  several.nodes = 4;
  EXPECT_EQ(choose_layout(8000, 8000, wanted, several).fine, 192);
  wanted.tile.reset();
  const TileLayout chosen = choose_layout(8000, 8000, wanted, workers(62));
  EXPECT_EQ(chosen.tile, 600);
  EXPECT_EQ(chosen.fine, 100);
}

TEST(Tuning, moves_tasks_where_that_is_wanted_or_cpus_add_much_to_gpus) {
  using config::Placement;
  NodeFacts facts = gpus(1);
  EXPECT_FALSE(moves_tasks(Placement::fixed, facts));
  EXPECT_TRUE(moves_tasks(Placement::dynamic, facts));
  EXPECT_FALSE(moves_tasks(Placement::dynamic, workers(2)));
  EXPECT_FALSE(moves_tasks(std::nullopt, facts));
  facts.tuning.measured = of_gpu({{&kernel::gsmm, 512, 512, 0, 100}});
  EXPECT_FALSE(moves_tasks(std::nullopt, facts));
  facts.tuning.measured.cpu = CpuMeasurement{16, {}, {{&kernel::gsmm, 512, 512, 0, 1600}}};
  EXPECT_TRUE(moves_tasks(std::nullopt, facts));
  facts.tuning.measured.cpu = CpuMeasurement{16, {}, {{&kernel::gsmm, 512, 512, 0, 160000}}};
  EXPECT_FALSE(moves_tasks(std::nullopt, facts));
}

TEST(Tuning, weighs_kernels_of_a_gpu_that_nobody_measured_by_what_they_are_to_each_other_on_gpus) {
  const auto seconds_of_a_flop = [](const NodeFacts& facts, const Kernel& kernel) {
    const std::array<OperandShape, 3> tiles{{{1024, 1024}, {1024, 1024}, {1024, 1024}}};
    const KernelParameters parameters;
    return task_costs(facts).kernel({&kernel, parameters, tiles}, true) /
           flops_of(kernel, 1024, 1024);
  };
  const double of_product = seconds_of_a_flop(gpus(1), kernel::gsmm);
  EXPECT_GT(seconds_of_a_flop(gpus(1), kernel::potrf), 20 * of_product);
  EXPECT_GT(seconds_of_a_flop(gpus(1), kernel::trsm), of_product);
  NodeFacts emulated = gpus(1);
  emulated.device_backend = "emulated";
  EXPECT_DOUBLE_EQ(seconds_of_a_flop(emulated, kernel::potrf),
                   seconds_of_a_flop(emulated, kernel::gsmm));
}

TEST(Tuning, weighs_copies_between_gpus_by_their_own_links) {
  NodeFacts facts = gpus(2);
  facts.tuning.measured = of_gpu({{&kernel::gsmm, 512, 512, 0, 100}});
  CopyRates& copies = facts.tuning.measured.devices.front().copies;
  const auto seconds = [&](std::int32_t from, std::int32_t to) {
    const NodeId node{0};
    return task_costs(facts).transfer({node, PlaceId{from}}, {node, PlaceId{to}}, 1'000'000'000);
  };
  copies.to_device = 50;
  copies.to_host = 25;
  copies.to_peer.reset();
  EXPECT_DOUBLE_EQ(seconds(0, 1), 1.0 / 50);
  EXPECT_DOUBLE_EQ(seconds(1, 0), 1.0 / 25);
  EXPECT_DOUBLE_EQ(seconds(1, 2), 1.0 / 25 + 1.0 / 50) << "by way of the host";
  copies.to_peer = 400;
  EXPECT_DOUBLE_EQ(seconds(1, 2), 1.0 / 400);
}

TEST(Tuning, divides_and_keeps_no_strip_where_tasks_move) {
  NodeFacts facts = gpus(1);
  facts.moves_tasks = true;
  config::Layout wanted;
  wanted.tile = 960;
  const TileLayout layout = choose_layout(8000, 8000, wanted, facts);
  EXPECT_EQ(layout.strip, 0);
  EXPECT_EQ(layout.fine, 192);
  wanted.hierarchy = config::Hierarchy::off;
  EXPECT_EQ(choose_layout(8000, 8000, wanted, facts).fine, 0);
  wanted = {};
  wanted.tile = 200;  // one part
  EXPECT_EQ(choose_layout(8000, 8000, wanted, facts).fine, 0);
}

TEST(Tuning, gives_cpus_beside_gpus_a_strip_only_if_both_were_measured_and_it_pays) {
  NodeFacts facts = gpus(1);
  const KernelTimes equal{{&kernel::gsmm, 512, 512, 0, 100}};
  facts.tuning.measured = of_gpu(equal);
  config::Layout wanted;
  wanted.tile = 1024;
  EXPECT_EQ(choose_layout(8000, 8000, wanted, facts).strip, 0);
  facts.tuning.measured.cpu = CpuMeasurement{16, {}, {{&kernel::gsmm, 512, 512, 0, 1600}}};
  EXPECT_EQ(choose_layout(8000, 8000, wanted, facts).strip, 512);
  facts.tuning.measured.cpu = CpuMeasurement{16, {}, {{&kernel::gsmm, 512, 512, 0, 160000}}};
  EXPECT_EQ(choose_layout(8000, 8000, wanted, facts).strip, 0);
}

TEST(Tuning, takes_width_and_blocks_of_qr_from_the_measurements_of_the_gpu) {
  NodeFacts facts = gpus(2);
  facts.tuning.measured =
      of_gpu({{&kernel::geqrt, 4096, 384, 128, 100}, {&kernel::unmqr, 4096, 384, 128, 100}});
  const QrLayout layout = choose_qr_cut(20000, 20000, {}, facts).layout;
  EXPECT_EQ(layout.tile, 384);
  EXPECT_EQ(layout.inner, 128);
  EXPECT_EQ(workforce_of(facts, 2).places, 2);
  EXPECT_DOUBLE_EQ(workforce_of(facts, 2).exchange_rate, 25);  // by way of the host
  EXPECT_EQ(workforce_of(facts, 1).places, 1);
  EXPECT_DOUBLE_EQ(workforce_of(facts, 1).exchange_rate, 0);
}

TEST(Tuning, deals_a_matrix_out_to_as_many_gpus_as_it_has_tiles_for) {
  const NodeFacts facts = gpus(4);
  EXPECT_EQ(devices_for(0, 0, facts), 1);
  EXPECT_EQ(devices_for(6144, 6144, facts), 1);
  EXPECT_EQ(devices_for(8192, 8192, facts), 2);
  EXPECT_EQ(devices_for(12288, 12288, facts), 3);
  EXPECT_EQ(devices_for(65536, 65536, facts), 4);
  EXPECT_EQ(choose_qr_cut(8192, 8192, {}, facts).distribution.devices, 1);
  EXPECT_EQ(choose_qr_cut(16384, 16384, {}, facts).distribution.devices, 2);
  EXPECT_EQ(choose_qr_cut(400000, 2000, {}, facts).distribution.devices, 4) << "rows for all";
  NodeFacts several = facts;
  several.nodes = 4;
  EXPECT_EQ(devices_for(16384, 16384, several), 1);
  EXPECT_EQ(devices_for(32768, 32768, several), 2);

  // The number in the configuration is a wish; emulated devices are there to be used.
  NodeFacts wanted = facts;
  wanted.are_devices_wanted = true;
  EXPECT_EQ(devices_for(1000, 1000, wanted), 4);
  NodeFacts emulated = facts;
  emulated.device_backend = "emulated";
  EXPECT_EQ(devices_for(1000, 1000, emulated), 4);
  EXPECT_EQ(devices_for(1000, 1000, workers(2)), 0);
}

TEST(Tuning, cuts_small_matrices_into_few_tiles_for_a_gpu) {
  const auto tile_of = [](std::int64_t n, const NodeFacts& facts) {
    return choose_layout(n, n, {}, facts).tile;
  };
  EXPECT_EQ(tile_of(1, gpus(4)), 1);
  EXPECT_EQ(tile_of(2048, gpus(4)), 2048);
  EXPECT_EQ(tile_of(4096, gpus(4)), 4096);
  EXPECT_EQ(tile_of(4097, gpus(4)), 2048);
  EXPECT_EQ(tile_of(8192, gpus(4)), 2048);
  EXPECT_EQ(tile_of(49152, gpus(1)), 4096);
  NodeFacts wanted = gpus(2);
  wanted.are_devices_wanted = true;
  EXPECT_EQ(tile_of(2048, wanted), 1024);
  EXPECT_EQ(tile_of(4096, wanted), 2048);
  EXPECT_EQ(tile_of(8192, wanted), 2048);
  NodeFacts little = gpus(1);
  little.device_memory_bytes = std::uint64_t{256} << 20;
  EXPECT_EQ(tile_of(4096, little), 1024) << "16 of them fit";
  NodeFacts many = gpus(1);
  many.nodes = 16;
  EXPECT_EQ(tile_of(8192, many), 512) << "every node has tiles";
}

TEST(Tuning, keeps_the_number_of_devices_that_a_run_used) {
  const NodeFacts facts = gpus(4);
  Distribution distribution = facts.distribution;
  distribution.devices = devices_for(4096, 4096, facts);
  const TileLayout layout = choose_layout(4096, 4096, {}, facts);
  const Config kept = resolved(Config{}, layout_keys(layout), distribution, facts);
  EXPECT_EQ(kept.runtime.devices.per_node, 1);
}

}  // namespace heddle
