#include "replay/simulation/simulated_memory.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "node-runtime/residency/least_memory.hpp"
#include "replay/run.hpp"
#include "replay/simulation/simulator.hpp"
#include "tests/replay/random_simulation.hpp"
#include "tests/replay/scripted_job.hpp"
#include "tests/support/seeds.hpp"

/// Devices' blocks in virtual time. Tiles of 8000 bytes.
namespace heddle::replay {
namespace {

using protocol::AccessMode;
using protocol::TileId;
using simulation::ProgramWriter;
using Side = SimulatedMemory::Side;
using Reach = SimulatedMemory::Reach;

constexpr PlaceId device{1};
constexpr std::uint64_t tile_bytes = 8192;  // as frames are cut

ScriptedJob one_kind_job(const ProgramWriter& writer) {
  return {writer.program(), writer.matrices(), {{"work", 1, 1, 4e-6, 4e-6, 1}}, tile_bytes};
}

class DeviceTiles : public testing::Test {
 protected:
  static BlockUse use(std::int32_t index, AccessMode mode) {
    return {{1, index}, mode, {protocol::MatrixId{0}, index}};
  }
  static std::vector<BlockUse> read(std::int32_t index) { return {use(index, AccessMode::read)}; }
  static std::vector<BlockUse> write(std::int32_t index) { return {use(index, AccessMode::write)}; }
  static bool is_on_device(SimulatedMemory& memory, std::int32_t index) {
    if (!memory.try_acquire(device, read(index))) return false;
    memory.release(device, Side::device, read(index));
    return true;
  }
  /// All that is under way ends.
  static void finish_transfers(SimulatedMemory& memory) {
    for (auto all = memory.take_transfers(); !all.empty(); all = memory.take_transfers()) {
      for (const SimulatedMemory::Transfer& transfer : all) memory.transfer_ends(transfer);
    }
  }

  ScriptedJob job_ = one_kind_job([] {
    ProgramWriter writer;
    for (int i = 0; i < 8; ++i) writer.task({writer.read_write(writer.tile(0, 1))});
    return writer;
  }());
};

}  // namespace

TEST_F(DeviceTiles, with_room_for_all_keeps_tiles_on_their_device_until_the_host_writes_them) {
  SimulatedMemory memory(job_, 1);
  EXPECT_TRUE(memory.lacks_on_host(device, use(5, AccessMode::read)));
  EXPECT_TRUE(is_on_device(memory, 5));
  const std::vector<BlockUse> update{use(5, AccessMode::read_write)};
  memory.request(device, Side::host, update, 7);
  EXPECT_TRUE(memory.take_ready().empty()) << "it has to be written back first";
  const auto transfers = memory.take_transfers();
  ASSERT_EQ(transfers.size(), 1U);
  EXPECT_FALSE(transfers[0].is_fetch);
  EXPECT_EQ(transfers[0].block, update[0].block);
  EXPECT_EQ(transfers[0].tile, update[0].tile);
  memory.transfer_ends(transfers[0]);
  EXPECT_EQ(memory.take_ready(), std::vector<std::int32_t>{7});
  memory.release(device, Side::host, update);
  EXPECT_FALSE(is_on_device(memory, 5));
  EXPECT_FALSE(memory.lacks_on_host(device, use(5, AccessMode::read)));
  EXPECT_FALSE(memory.try_acquire(device, update));
  memory.request(device, Side::device, update, 9);
  finish_transfers(memory);
  EXPECT_EQ(memory.take_ready(), std::vector<std::int32_t>{9});
  memory.release(device, Side::device, update);
  EXPECT_TRUE(memory.lacks_on_host(device, use(5, AccessMode::read)));
  memory.freed(device, update[0].block);
  EXPECT_EQ(memory.evictions(), 0);
}

TEST_F(DeviceTiles, that_is_too_small_has_the_last_tiles_on_the_device_and_brings_the_first_ones) {
  SimulatedMemory memory(job_, 1, 3 * tile_bytes, tile_bytes);
  std::vector<BlockUse> tiles;
  for (int i = 0; i < 5; ++i) tiles.push_back(use(i, AccessMode::write));
  memory.fill(device, tiles);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(is_on_device(memory, i), i >= 2) << i;
  }
  EXPECT_TRUE(memory.try_acquire(device, read(4)));
  EXPECT_FALSE(memory.try_acquire(device, read(0)));
  memory.request(device, Side::device, read(0), 3);
  finish_transfers(memory);
  EXPECT_EQ(memory.take_ready(), std::vector<std::int32_t>{3});
  EXPECT_EQ(memory.evictions(), 1);
  EXPECT_FALSE(is_on_device(memory, 2)) << "the one that nobody had used for longest";
  memory.release(device, Side::device, read(0));
  memory.release(device, Side::device, read(4));
}

TEST_F(DeviceTiles, gives_messages_what_is_there_and_lets_them_wait_for_what_is_on_its_way) {
  SimulatedMemory memory(job_, 1, 1 * tile_bytes, tile_bytes);
  const std::vector<BlockUse> tiles{use(0, AccessMode::write), use(1, AccessMode::write)};
  memory.fill(device, tiles);
  // The first one is on the host, the other one on the device.
  EXPECT_EQ(memory.reach(device, read(0)[0]), Reach::backing);
  memory.end_reach(device, read(0)[0], Reach::backing);
  EXPECT_EQ(memory.reach(device, read(1)[0]), Reach::device);
  memory.end_reach(device, read(1)[0], Reach::device);
  // What arrives without room goes to the host.
  EXPECT_EQ(memory.reach(device, write(2)[0]), Reach::backing);
  memory.end_reach(device, write(2)[0], Reach::backing);
  EXPECT_FALSE(is_on_device(memory, 2));
  EXPECT_FALSE(memory.lacks_on_host(device, use(2, AccessMode::read)));
  // The other one, written once more, makes room for it, and cannot be written meanwhile.
  ASSERT_TRUE(memory.try_acquire(device, write(1)));
  memory.release(device, Side::device, write(1));
  memory.request(device, Side::device, read(2), 4);
  EXPECT_EQ(memory.reach(device, write(1)[0]), Reach::nowhere);
  finish_transfers(memory);
  EXPECT_EQ(memory.take_ready(), std::vector<std::int32_t>{4});
  EXPECT_EQ(memory.reach(device, write(1)[0]), Reach::backing);
  memory.end_reach(device, write(1)[0], Reach::backing);
  memory.release(device, Side::device, read(2));
}

/// More tiles than there is room for, twice in turns: they come and go. A kernel takes 4 us and a
/// copy 1 us, so that kernels hide copies.
TEST(SimulatedMemory, tiles_that_do_not_fit_come_and_go_beside_kernels) {
  ProgramWriter writer;
  std::vector<TileId> tiles;
  for (int i = 0; i < 24; ++i) tiles.push_back(writer.tile(0, 1));
  for (int t = 0; t < 2; ++t) {
    for (const TileId tile : tiles) writer.task({writer.read_write(tile)});
  }
  SimulatedMachine machine = free_machine();
  machine.devices = 1;
  machine.device_streams = 1;
  machine.to_device = machine.to_host = {0, tile_bytes * 1e6};  // 1 us for a tile
  const auto simulated = [&](std::uint64_t frames) {
    ScriptedJob job = one_kind_job(writer);
    machine.device_memory_bytes = frames * tile_bytes;
    return simulate(machine, job, {.traces = true});
  };
  const SimulationResult in_core = simulated(24);
  EXPECT_EQ(in_core.evictions, 0);
  EXPECT_EQ(in_core.fetches, 0);
  EXPECT_NEAR(in_core.seconds * 1e6, 48 * 4, 1e-3);
  const SimulationResult result = simulated(18);
  EXPECT_EQ(result.tasks, 48);
  EXPECT_GT(result.evictions, 6);
  EXPECT_GT(result.fetches, 6);
  EXPECT_GE(result.write_backs, 6);
  EXPECT_EQ(result.fetched_bytes, static_cast<std::uint64_t>(result.fetches) * tile_bytes);
  EXPECT_GE(result.seconds, in_core.seconds);
  EXPECT_LT(result.seconds, 1.1 * in_core.seconds) << "copies are hidden";
  const RunTrace run = make_run("simulated", result.traces);
  EXPECT_EQ(std::ssize(run.copies), result.fetches + result.write_backs);
  // With a slow link it is the link that counts: all that is moved, one way.
  machine.to_device.bytes_per_s = machine.to_host.bytes_per_s = tile_bytes * 2e4;  // 50 us
  const SimulationResult slow = simulated(18);
  EXPECT_GE(slow.seconds * 1e6, 50.0 * static_cast<double>(slow.fetches));
  EXPECT_LT(slow.seconds * 1e6, 50.0 * static_cast<double>(slow.fetches + 3));
  EXPECT_GT(slow.seconds, 1.5 * in_core.seconds);
}

/// 18 of 40 tiles have room. Of tasks on tiles of their own, 50 us each and all ready, every other
/// one is urgent; the rest would have their tiles brought as well.
TEST(SimulatedMemory, tiles_of_tasks_that_are_far_from_urgent_come_when_nothing_urgent_runs) {
  const auto fetches_before_last_urgent = [](std::int32_t span) {
    ProgramWriter writer;
    std::vector<TileId> tiles;
    for (int i = 0; i < 40; ++i) tiles.push_back(writer.tile(0, 1));
    for (const TileId tile : tiles) writer.task({writer.read_write(tile)});
    simulation::Program program = writer.program();
    for (std::size_t i = 0; i < 40; ++i) program.statements[i].priority = i % 2 == 0 ? 9 : 1;
    ScriptedJob job(program, writer.matrices(), {{"work", 1, 1, 0, 50e-6, 1}}, tile_bytes);
    job.set_priority_span(span);
    SimulatedMachine machine = free_machine();
    machine.devices = 1;
    machine.device_streams = 1;
    machine.device_memory_bytes = 18 * tile_bytes;
    const RunTrace run = make_run("simulated", simulate(machine, job, {.traces = true}).traces);
    std::int64_t last_ns = 0;
    for (const Task& task : run.tasks) {
      if (task.priority == 9) last_ns = std::max(last_ns, task.time.start_ns);
    }
    std::set<std::int32_t> urgent;
    for (const Task& task : run.tasks) {
      if (task.priority == 9) urgent.insert(task.tile.index);
    }
    EXPECT_EQ(run.tasks.size(), 40U);
    return std::ranges::count_if(run.copies, [&](const Copy& copy) {
      return copy.to != host_place && copy.time.end_ns < last_ns &&
             !urgent.contains(copy.tile.index);
    });
  };
  // One that was generated before anything ran.
  EXPECT_LE(fetches_before_last_urgent(5), 1);
  EXPECT_GE(fetches_before_last_urgent(10), 8);
}

/// 18 of 24 tiles are on the device. Four others are on their way, 50 us each, for tasks
/// that are not urgent, when one becomes ready that is. It is asked for when the first one has
/// come, and its tile comes next but for the one whose transfer has begun.
TEST(SimulatedMemory, tiles_of_urgent_tasks_come_before_those_that_were_asked_for_earlier) {
  ProgramWriter writer;
  std::vector<TileId> tiles;
  for (int i = 0; i < 24; ++i) tiles.push_back(writer.tile(0, 1));
  writer.task({writer.read_write(tiles[23])});  // keeps the urgent one for 4 us
  for (std::size_t i = 0; i < 4; ++i) writer.task({writer.read_write(tiles[i])});
  writer.task({writer.read_write(tiles[23]), writer.read(tiles[4])});
  for (std::size_t i = 5; i < 23; ++i) writer.task({writer.read_write(tiles[i])});
  simulation::Program program = writer.program();
  for (std::size_t i = 0; i < 24; ++i) program.statements[i].priority = i < 5 ? 1 : 0;
  program.statements[5].priority = 9;
  ScriptedJob job(program, writer.matrices(), {{"work", 1, 1, 4e-6, 4e-6, 1}}, tile_bytes);
  SimulatedMachine machine = free_machine();
  machine.devices = 1;
  machine.device_streams = 1;
  machine.device_memory_bytes = 18 * tile_bytes;
  machine.to_device = {0, tile_bytes * 2e4};  // 50 us for a tile
  machine.to_host = {0, 1e18};
  RunTrace run = make_run("simulated", simulate(machine, job, {.traces = true}).traces);
  std::erase_if(run.copies, [](const Copy& copy) { return copy.to == host_place; });
  std::ranges::sort(run.copies, {}, [](const Copy& copy) { return copy.time.start_ns; });
  std::vector<std::int32_t> order;
  for (const Copy& copy : run.copies) order.push_back(copy.tile.index);
  ASSERT_GE(order.size(), 5U);
  order.resize(5);
  EXPECT_EQ(order, (std::vector<std::int32_t>{0, 1, 4, 2, 3}));
}

/// Random programs on devices with hardly more room than one task needs: everything ends, and every
/// task has run once, as on devices with room for all.
TEST(SimulatedMemory, runs_random_programs_in_next_to_no_room) {
  for (const std::uint64_t seed : simulation::seeds(300)) {
    SCOPED_TRACE(seed);
    RandomSimulation roomy(seed);
    if (roomy.machine.devices == 0) continue;
    const SimulationResult all = simulate(roomy.machine, *roomy.job, roomy.options);
    for (const bool lends : {false, true}) {
      RandomSimulation tight(seed);
      tight.options.lends = lends;
      if (seed % 2 == 0) tight.job->set_priority_span(static_cast<std::int32_t>(seed % 6));
      const std::uint64_t block = tight.job->tile_bytes({protocol::MatrixId{0}, 0});
      const auto devices = static_cast<std::size_t>(tight.machine.devices);
      tight.machine.device_memory_bytes = least_device_bytes(block, devices);
      const SimulationResult result = simulate(tight.machine, *tight.job, tight.options);
      EXPECT_EQ(result.tasks, all.tasks);
      EXPECT_DOUBLE_EQ(result.flops, all.flops);
    }
  }
}

}  // namespace heddle::replay
