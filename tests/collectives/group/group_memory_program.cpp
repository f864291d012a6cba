/// What groups say that they hold, beside what is allocated; and that a group which has gone leaves
/// no memory of devices behind.
///
///   mpiexec -n P group_memory_program
///
/// Prints "all is well" on node 0.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <mpi.h>
#include <string>
#include <thread>
#include <vector>

#include "node-runtime/collectives/board/board.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

std::int64_t wrong = 0;

void expect(bool is_well, const std::string& what) {
  if (is_well) return;
  ++wrong;
  fmt::print("{}\n", what);
}

/// The number behind `begin`, in a text that has it once.
std::int64_t number_behind(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  expect(at != std::string::npos, fmt::format("no '{}' in\n{}", begin, text));
  return at == std::string::npos ? -1 : std::strtoll(text.c_str() + at + begin.size(), nullptr, 10);
}

/// Every other number is reduced: each operation packs them into memory of the device.
void reduce_on_device(const Group& group, const DeviceBuffer& memory) {
  constexpr std::int64_t count = 50000;
  const Incoming all{memory.address(), 1, Datatype::vector(count, 1, 2, Scalar::float64)};
  for (int k = 0; k < 3; ++k) group.all_reduce(all, ReduceOperation::sum());
}

std::uint64_t settled(const Device& device) {
  constexpr std::chrono::milliseconds pause{300};
  std::uint64_t last = device.memory_available();
  for (;;) {
    std::this_thread::sleep_for(pause);
    const std::uint64_t now = device.memory_available();
    if (now == last) return now;
    last = now;
  }
}

void check_memory_of_devices(const Group& world, const Device& device, const DeviceBuffer& memory) {
  {
    // What the node allocates once is none of the group's below.
    const Group first = world.split(0, world.rank());
    reduce_on_device(first, memory);
  }
  const std::uint64_t before = settled(device);
  {
    const Group group = world.split(0, world.rank());
    expect(number_behind(group.describe_memory(), "device 0  ") == 0, "it holds memory at once");
    reduce_on_device(group, memory);
    const auto held = static_cast<std::int64_t>(before - settled(device));
    const std::string text = group.describe_memory();
    expect(held > 0, "packed elements need memory");
    expect(number_behind(text, "device 0  ") == held,
           fmt::format("{} bytes of the device are allocated; it says\n{}", held, text));
  }
  const std::uint64_t after = settled(device);
  expect(after == before, fmt::format("{} bytes of the device are left by a group that has gone",
                                      static_cast<std::int64_t>(before - after)));
}

void check_memory_of_hosts(const Group& world) {
  const Group group = world.split(0, world.rank());
  const auto board = static_cast<std::int64_t>(collectives::Board::bytes_for(group.size()));
  expect(number_behind(group.describe_memory(), "board     ") == board, "the board's bytes");
  constexpr std::int64_t count = 200000;
  std::vector<double> x(count, 1);
  const Incoming all{x.data(), count, Scalar::float64};
  const auto begin = [&] { return group.begin_all_reduce(all, ReduceOperation::sum()); };
  // The last one comes late, so that the others have begun, and cannot have ended.
  const bool is_last = group.rank() == group.size() - 1;
  {
    std::vector<Collective> begun;
    if (!is_last) {
      begun.push_back(begin());
      const std::int64_t now = number_behind(group.describe_memory(), "host      ");
      expect(now > 0 && now <= 64 * count * 8, fmt::format("{} bytes for slots", now));
    }
    world.barrier();
    if (is_last) begun.push_back(begin());
    begun.front().wait();
  }
  // The thread that ended it may have it still.
  std::int64_t now = -1;
  for (int k = 0; k < 1000 && now != 0; ++k) {
    now = number_behind(group.describe_memory(), "host      ");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  expect(now == 0, fmt::format("{} bytes behind the operation", now));
  expect(number_behind(group.describe_memory(), " bytes now, ") > 0, "the most so far");
}

std::int64_t run() {
  Node node(Config::from_text("runtime: {cpu_workers: 1, devices: {backend: emulated, per_node: "
                              "1, memory: 64MiB}}\n",
                              "test"),
            MPI_COMM_WORLD);
  const Group world = node.group();
  {
    const DeviceBuffer memory(node.device(0), 100000 * sizeof(double));
    check_memory_of_devices(world, node.device(0), memory);
    world.release(memory.address());
    world.barrier();
  }
  check_memory_of_hosts(world);
  world.all_reduce(Incoming{&wrong, 1, Scalar::int64}, ReduceOperation::sum());
  const bool is_first = world.rank() == 0;
  node.stop();
  if (is_first && wrong == 0) fmt::print("all is well\n");
  return wrong;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  const bool is_well = heddle::run() == 0;
  std::fflush(nullptr);
  MPI_Finalize();
  return is_well ? 0 : 1;
}
