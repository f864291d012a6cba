#include "replay/simulation/memory_needs.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <string>

#include "base/error.hpp"
#include "replay/simulation/simulator.hpp"
#include "tests/replay/scripted_job.hpp"

/// Devices whose memory is bounded. Tiles of 8000 bytes, kernels of 400 ns, copies of 1000.
namespace heddle::replay {
namespace {

using protocol::TileId;
using simulation::ProgramWriter;

constexpr int tiles = 8;
constexpr std::uint64_t tile_bytes = 8000;

/// Each tile of a device is written from one of the host.
ScriptedJob job() {
  ProgramWriter writer;
  for (int i = 0; i < tiles; ++i) {
    const TileId here = writer.tile(0, 1);
    const TileId there = writer.tile(0, 0);
    writer.task({writer.read_write(here), writer.read(there)});
    writer.release(there);
  }
  return {writer.program(), writer.matrices(), {{"work", 1, 1, 0, 4e-7, 1}}, tile_bytes};
}

std::int64_t ns_with(std::uint64_t device_memory_bytes) {
  SimulatedMachine machine;
  machine.devices = 1;
  machine.device_streams = 1;
  machine.device_memory_bytes = device_memory_bytes;
  machine.append_s = machine.task_s = machine.wake_s = machine.launch_s = machine.notice_s = 0;
  machine.to_device = {0, 8e9};
  ScriptedJob program = job();
  return std::llround(simulate(machine, program, {}).seconds * 1e9);
}

/// The sink of a walk that feeds the needs alone.
class NeedsSink final : public WalkSink {
 public:
  explicit NeedsSink(MemoryNeeds& needs) : needs_(needs) {}
  void append(TaskKindId /*kind*/, std::int32_t /*priority*/,
              std::span<const protocol::Access> accesses) override {
    needs_.meet(accesses);
    needs_.meet(accesses);  // a tile is counted once
  }
  void release(const protocol::Access& /*access*/) override {}
  [[nodiscard]] bool has_room() const override { return true; }

 private:
  MemoryNeeds& needs_;
};

}  // namespace

TEST(MemoryNeeds, are_a_nodes_own_tiles_by_place) {
  ScriptedJob program = job();
  MemoryNeeds needs(program, NodeId{0}, 2);
  NeedsSink sink(needs);
  program.walk(NodeId{0}, sink)->advance();
  EXPECT_EQ(needs.bytes(PlaceId{1}), tiles * tile_bytes);
  EXPECT_EQ(needs.bytes(host_place), tiles * tile_bytes);
  EXPECT_EQ(needs.largest_tile_bytes(), tile_bytes);
  EXPECT_EQ(needs.tiles(PlaceId{1}).size(), std::size_t{tiles});
  MemoryNeeds of_another(program, NodeId{1}, 2);
  NeedsSink other_sink(of_another);
  program.walk(NodeId{1}, other_sink)->advance();
  EXPECT_EQ(of_another.bytes(PlaceId{1}), 0U);
  EXPECT_TRUE(of_another.tiles(PlaceId{1}).empty());
}

TEST(MemoryNeeds, bound_what_is_copied_ahead) {
  // Copies follow each other; with one block each waits for the task before it.
  EXPECT_EQ(ns_with(0), tiles * 1000 + 400);
  EXPECT_EQ(ns_with(100 * tiles * tile_bytes), tiles * 1000 + 400);
  EXPECT_EQ(ns_with((tiles + 1) * tile_bytes), tiles * 1400);
  // Two blocks are left: half of them is for the next job.
  EXPECT_EQ(ns_with((tiles + 3) * tile_bytes), tiles * 1000 + 400);
}

TEST(MemoryNeeds, of_one_task_that_do_not_fit_are_refused_with_numbers) {
  try {
    ns_with(3 * tile_bytes);
    FAIL() << "simulated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(
        std::string(error.what())
            .find(
                "each device has 23.44 KiB (machine.device_memory), and the tiles of one task and "
                "of copies under way may take 136.00 KiB"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace heddle::replay
