/// Operations of all nodes over their own messages, with every element checked.
///
///   mpiexec -n P operations_program CASES
///
/// Each node is a rank; the hosts and GPUs that they claim to be on are drawn at random, alike on
/// all of them. Prints "all is well" on node 0.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <mpi.h>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/execution/operation.hpp"
#include "node-runtime/collectives/schedule/all_gather.hpp"
#include "node-runtime/collectives/schedule/all_to_all.hpp"
#include "node-runtime/collectives/schedule/barrier.hpp"
#include "node-runtime/collectives/schedule/broadcast.hpp"
#include "node-runtime/collectives/schedule/reduce.hpp"
#include "node-runtime/collectives/schedule/scan.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/transport/user_messages.hpp"
#include "tests/collectives/schedule/random_places.hpp"

namespace heddle::collectives {
namespace {

/// Element i of the input of a rank.
double value(std::int32_t rank, std::int64_t i, std::uint32_t seed) {
  std::uint64_t h = (static_cast<std::uint64_t>(rank) << 40U) ^ static_cast<std::uint64_t>(i) ^
                    (std::uint64_t{seed} << 20U);
  h = (h ^ (h >> 33U)) * 0xff51afd7ed558ccdULL;
  h = (h ^ (h >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<double>(h >> 11U) * 0x1p-52 - 1;
}

/// The sum of ranks [begin, end) in the bracket, by its definition.
double bracket(std::int32_t begin, std::int32_t end, std::int64_t i, std::uint32_t seed) {
  if (end - begin == 1) return value(begin, i, seed);
  std::int32_t left = 1;
  while (2 * left < end - begin) left *= 2;
  const double a = bracket(begin, begin + left, i, seed);
  return a + bracket(begin + left, end, i, seed);
}

class Cases {
 public:
  explicit Cases(Node& node) : node_(node), size_(node.size()), own_(node.rank()) {
    const std::shared_ptr<UserMessages> messages = NodeInternals(node).user_messages();
    const p2p::ChannelId channel = UserMessages::first_group_channel;
    auto group = std::make_shared<GroupMessages>();
    for (std::int32_t r = 0; r < size_; ++r) group->nodes.push_back(NodeId{r});
    group->send = [messages, channel](const p2p::Outgoing& message, NodeId to, std::int32_t tag,
                                      p2p::OnEnd on_end) {
      return messages->send(message, to, tag, channel, std::move(on_end));
    };
    group->receive = [messages, channel](const p2p::Incoming& room, NodeId from, std::int32_t tag,
                                         p2p::OnEnd on_end) {
      return messages->receive(room, from, tag, channel, std::move(on_end));
    };
    messages_ = std::move(group);
  }

  void run(std::uint32_t seed) {
    random_.seed(seed);
    const Places places(random_places(random_, size_));
    const Levels levels(places);
    LevelTrees trees{};
    for (Tree& tree : trees) tree = all_trees[below(5)];
    const Rank root{below(size_)};
    const Rank rank{own_};
    const std::int64_t count = below(4) == 0 ? below(300000) : below(2000);
    const std::int64_t fragment = 1 + count / (1 + below(40)) + below(100);
    const std::int32_t in_flight = 1 + below(4);
    const auto operate = [&](const char* name, Schedule schedule, std::int64_t in, std::int64_t out,
                             std::function<BlockPlace(std::int32_t)> place,
                             const std::function<double(std::int64_t)>& expected,
                             std::int64_t element_bytes = sizeof(double)) {
      const auto compiled = std::make_shared<const CompiledSchedule>(std::move(schedule));
      std::vector<double> input;
      for (std::int64_t i = 0; i < in; ++i) input.push_back(value(own_, i, seed));
      std::vector<double> output(static_cast<std::size_t>(out), 7);
      std::vector<double> slots(
          static_cast<std::size_t>(compiled->schedule().slots * fragment * in_flight));
      Task task{compiled,
                std::move(place),
                element_bytes,
                fragment,
                in_flight,
                reinterpret_cast<const std::byte*>(input.data()),
                reinterpret_cast<std::byte*>(output.data()),
                reinterpret_cast<std::byte*>(slots.data()),
                ReduceOperation::sum(),
                Scalar::float64};
      const auto operation = std::make_shared<Operation>(std::move(task), messages_, number_++);
      operation->begin();
      operation->wait();
      if (!expected) return;
      for (std::int64_t i = 0; i < out; ++i) {
        const double found = output[static_cast<std::size_t>(i)];
        if (std::bit_cast<std::uint64_t>(found) == std::bit_cast<std::uint64_t>(expected(i))) {
          continue;
        }
        throw Error(ErrorCode::internal,
                    fmt::format("seed {}: element {} of {} of {} is {}, not {}", seed, i, out, name,
                                found, expected(i)));
      }
    };
    const auto whole = [count](std::int32_t) { return BlockPlace{count, 0, 0}; };
    const auto sum = [&](std::int64_t i) { return bracket(0, size_, i, seed); };

    const std::int32_t blocks = broadcast_blocks(trees);
    operate(
        "broadcast", make_broadcast(rank, root, levels, trees), count, rank == root ? 0 : count,
        [count, blocks](std::int32_t b) {
          const std::int64_t first = blocks == 1 ? count : count / 2;
          return b == 0 ? BlockPlace{first, 0, 0} : BlockPlace{count - first, first, first};
        },
        [&](std::int64_t i) { return value(root.value(), i, seed); });
    operate("reduce", make_reduce(rank, root, levels, trees), count, rank == root ? count : 0,
            whole, sum);
    operate("scan", make_scan(rank, size_, Scan::inclusive), count, count, whole,
            [&](std::int64_t i) { return bracket(0, own_ + 1, i, seed); });
    const auto each = [count, size = size_](std::int32_t b) {
      const std::int64_t begin = count * b / size;
      return BlockPlace{count * (b + 1) / size - begin, begin, begin};
    };
    operate("all_reduce", make_all_reduce(rank, levels, trees, AllReduce::scatter_gather), count,
            count, each, sum);
    operate(
        "all_gather", make_all_gather(rank, levels, trees), count, count * size_,
        [count](std::int32_t b) {
          return BlockPlace{count, 0, count * b};
        },
        [&](std::int64_t i) {
          return value(static_cast<std::int32_t>(i / count), i % count, seed);
        });
    const std::int64_t part = count / size_;
    operate(
        "all_to_all", make_all_to_all(rank, places, levels, static_cast<AllToAll>(below(3))),
        part * size_, part * size_,
        [part, size = size_](std::int32_t b) {
          return BlockPlace{part, part * (b % size), part * (b / size)};
        },
        [&](std::int64_t i) {
          return value(static_cast<std::int32_t>(i / part), part * own_ + i % part, seed);
        });
    operate(
        "barrier", make_barrier(rank, levels, trees), 0, 0,
        [](std::int32_t) {
          return BlockPlace{1, 0, 0};
        },
        {}, 0);
  }

  /// Of two nodes the second one has room for less than the first sends, and waits for another
  /// message besides, which never comes: it hears of the one and takes the other back.
  void differ() {
    Schedule schedule;
    schedule.rank = Rank{own_};
    const Rank other{1 - own_};
    schedule.slots = 1;
    if (own_ == 0) {
      schedule.steps = {{Step::Kind::send, 0, other, {Spot::in_input()}, {}, {}}};
    } else {
      schedule.steps = {{Step::Kind::receive, 0, other, {}, Spot::in_output(), {}},
                        {Step::Kind::receive, 0, other, {}, Spot::in_slot(0), {}}};
    }
    std::vector<double> memory(40);
    auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
    Task task;
    task.schedule = std::make_shared<const CompiledSchedule>(std::move(schedule));
    task.place = [count = own_ == 0 ? 20 : 10](std::int32_t) { return BlockPlace{count, 0, 20}; };
    task.element_bytes = sizeof(double);
    task.fragment_elements = 20;
    task.input = bytes;
    task.output = bytes;
    std::vector<double> slot(20);
    task.slots = reinterpret_cast<std::byte*>(slot.data());
    const auto operation = std::make_shared<Operation>(std::move(task), messages_, number_++);
    operation->begin();
    try {
      operation->wait();
    } catch (const Error& error) {
      if (std::string(error.what()).find("truncated") != std::string::npos) return;
      throw;
    }
    // A short message has left before anybody knows.
    if (own_ == 1) throw Error(ErrorCode::internal, "20 elements were received where 10 fit");
  }

 private:
  [[nodiscard]] std::int32_t below(std::int32_t n) {
    return static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(n));
  }

  Node& node_;
  std::int32_t size_;
  std::int32_t own_;
  std::mt19937 random_;
  std::shared_ptr<const GroupMessages> messages_;
  std::int64_t number_ = 0;
};

}  // namespace
}  // namespace heddle::collectives

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    heddle::Node node(
        heddle::Config::from_text("runtime: {cpu_workers: 1, devices: {backend: none}}", "test"),
        MPI_COMM_WORLD);
    heddle::collectives::Cases cases(node);
    const int count = argc > 1 ? std::atoi(argv[1]) : 10;
    for (int seed = 1; seed <= count; ++seed) cases.run(static_cast<std::uint32_t>(seed));
    if (node.size() == 2) cases.differ();
    cases.run(0);
    node.stop();
    if (node.rank() == 0) fmt::print("all is well\n");
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    status = 1;
  }
  std::fflush(nullptr);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
