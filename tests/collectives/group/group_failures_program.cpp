/// What goes wrong in a group, and what all members hear of it.
///
///   mpiexec -n N group_failures_program CASE [ELEMENTS]
///
/// Each node prints one line: how it went.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <memory>
#include <mpi.h>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "kernels/byte_kernel.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/reduce/own_operations.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

/// "(2) text" of what a call throws, or "nothing".
std::string heard(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return fmt::format("({}) {}", exit_status(error.code()), error.what());
  }
  return "nothing";
}

/// Elements of the operations below: few are done on the board, many by messages.
std::int64_t many = 1000;

bool is_last(const Group& group) {
  return group.rank() == group.size() - 1;
}

std::string sum_of_ones(const Group& group) {
  double one = 1;
  const std::string said = heard([&] {
    group.all_reduce({&one, 1, Scalar::float64}, ReduceOperation::sum());
  });
  return said == "nothing" ? fmt::format("sum {}", one) : said;
}

/// All make the same wrong call; the group goes on.
std::string wrong(Node& node) {
  const Group group = node.group();
  double x = 0;
  const std::string first = heard([&] { group.broadcast({&x, 8}, group.size()); });
  return fmt::format("{}; then {}", first, sum_of_ones(group));
}

/// The last one alone makes a wrong call, while the others are in it, or have yet to come.
std::string wrong_on_one(Node& node) {
  const Group group = node.group();
  std::vector<double> x(static_cast<std::size_t>(many));
  const std::int64_t count = is_last(group) ? -1 : many;
  const std::string first = heard([&] {
    group.all_reduce({x.data(), count, Scalar::float64}, ReduceOperation::sum());
  });
  return fmt::format("{}; then {}", first, sum_of_ones(group).substr(0, 3));
}

/// The last one calls something else.
std::string other_call(Node& node) {
  const Group group = node.group();
  std::vector<double> x(static_cast<std::size_t>(many));
  const Incoming all{x.data(), many, Scalar::float64};
  const std::string first = heard([&] {
    is_last(group) ? group.all_reduce(all, ReduceOperation::maximum())
                   : group.all_reduce(all, ReduceOperation::sum());
  });
  const Group other = node.group();
  return fmt::format("{}; then {}", first, sum_of_ones(other));
}

/// The last one reduces in another order.
std::string other_order(Node& node) {
  const Group group = node.group();
  std::vector<double> x(static_cast<std::size_t>(many));
  const CollectiveOptions options{.order = is_last(group) ? Order::places : Order::ranks};
  return heard([&] {
    group.all_reduce({x.data(), many, Scalar::float64}, ReduceOperation::sum(), options);
  });
}

/// The last one gathers in place.
std::string other_form(Node& node) {
  const Group group = node.group();
  std::vector<double> x(static_cast<std::size_t>(many));
  std::vector<double> all(static_cast<std::size_t>(many * group.size()));
  return heard([&] {
    const Incoming to{all.data(), many, Scalar::float64};
    is_last(group) ? group.all_gather(to) : group.all_gather({x.data(), many, Scalar::float64}, to);
  });
}

/// The last one gives fewer elements, or of another scalar.
std::string other_count(Node& node) {
  const Group group = node.group();
  std::vector<double> x(static_cast<std::size_t>(many));
  const std::string first = heard([&] {
    group.broadcast({x.data(), is_last(group) ? many - 100 : many, Scalar::float64}, 0);
  });
  return first == "nothing" ? sum_of_ones(group) : first;
}
std::string other_scalar(Node& node) {
  const Group group = node.group();
  std::vector<double> x(static_cast<std::size_t>(many));
  const std::string first = heard([&] {
    group.broadcast({x.data(), is_last(group) ? 2 * many : many,
                     is_last(group) ? Scalar::float32 : Scalar::float64},
                    0);
  });
  return first == "nothing" ? sum_of_ones(group) : first;
}

/// The first one is late: the others have heard that operation `wrong` fails, and it too, before it
/// calls the two before, which wait for it.
std::string late(Node& node) {
  const Group group = node.group();
  const Group all = group.split(0, group.rank());
  const bool is_late = group.rank() == 0;
  const Group others = group.split(is_late ? -1 : 0, group.rank());
  std::vector<double> x(static_cast<std::size_t>(many), 1.0);
  double y = group.rank();
  std::optional<Collective> before;
  const auto begin = [&] {
    group.broadcast({&y, 1, Scalar::float64}, 1);  // on the board; the root waits for nobody
    before = group.begin_all_reduce({x.data(), many, Scalar::float64}, ReduceOperation::sum());
  };
  std::vector<double> z(static_cast<std::size_t>(many));
  const auto wrong = [&] {
    const std::int64_t count = is_last(group) ? -1 : many;
    // The last one refuses it when another one has begun it.
    if (is_last(group)) others.barrier();
    const Collective call =
        group.begin_all_reduce({z.data(), count, Scalar::float64}, ReduceOperation::sum());
    if (!is_late) others.barrier();
    call.wait();
  };
  std::string told;
  if (!is_late) {
    begin();
    told = heard(wrong);
  }
  // By messages: a node's arrive in order, so the failure has come to the late one before.
  all.begin_barrier({.algorithm = "flat"}).wait();
  if (is_late) begin();
  const std::string told_before = heard([&] { before->wait(); });
  if (is_late) told = heard(wrong);
  return fmt::format("{}, broadcast {}, sums {} {}; then {}; then {}", told_before, y, x.front(),
                     x.back(), told, sum_of_ones(group));
}

/// An exception leaves the last node while the others stop.
std::string leaves(Node& node) {
  const Group group = node.group();
  return heard([&] {
    group.barrier();  // a slow node hears in it already
    if (is_last(group)) throw std::runtime_error("left");
    node.stop();
    node.barrier();
  });
}

/// An exception leaves the last node when its part is done. The others have called by then, as it
/// needs theirs, and may have to take what it has sent.
std::string leaves_behind(Node& node) {
  const Group group = node.group();
  std::vector<double> x(static_cast<std::size_t>(many), 1);
  group.all_reduce({x.data(), many, Scalar::float64}, ReduceOperation::sum());
  if (is_last(group)) throw std::runtime_error("left");
  return fmt::format("took {}", std::accumulate(x.begin(), x.end(), 0.0));
}

/// The last one does not call while the others wait.
std::string absent(Node& node) {
  const Group group = node.group();
  group.barrier();
  if (is_last(group)) {
    std::this_thread::sleep_for(std::chrono::seconds(6));
    return sum_of_ones(group);
  }
  std::vector<double> x(static_cast<std::size_t>(many));
  return heard([&] {
    group.all_reduce({x.data(), many, Scalar::float64}, ReduceOperation::sum());
  });
}

/// One group has failed; another one goes on.
std::string beside(Node& node) {
  const Group group = node.group();
  const Group other = group.split(0, group.rank());
  std::vector<double> x(10);
  std::string first = heard([&] {
    group.broadcast({x.data(), is_last(group) ? 9 : 10, Scalar::float64}, 0);
  });
  if (first == "nothing") first = sum_of_ones(group);
  return fmt::format("{}; then {}", first.substr(0, 3), sum_of_ones(other));
}

/// The last node is lost.
std::string lost(Node& node) {
  const Group group = node.group();
  std::vector<double> x(100000);
  std::string said = heard([&] {
    group.barrier();  // a slow node hears in it already
    if (is_last(group)) ::_exit(0);
    for (int k = 0; k < 100; ++k) {
      group.all_reduce({x.data(), 100000, Scalar::float64}, ReduceOperation::sum());
    }
  });
  // Who hears it later must hear of the lost node, and not of this one.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return said;
}

/// Wrong calls on all, each with what it says.
std::string refusals(Node& node) {
  const Group group = node.group();
  std::array<double, 100> x{};
  std::array<double, 100> y{};
  const auto doubles = [](double* at, std::int64_t count) {
    return Incoming{at, count, Scalar::float64};
  };
  const auto sum = ReduceOperation::sum();
  const Datatype::Member members[] = {{0, 1, Scalar::float64}, {8, 1, Scalar::int64}};
  const std::vector<std::function<void()>> calls{
      [&] {
        group.reduce({x.data(), 4, Scalar::float64}, doubles(y.data(), 4), sum, -1);
      },
      [&] { group.all_reduce(doubles(nullptr, 4), sum); },
      [&] {
        group.all_reduce({x.data(), 4, Scalar::float64}, doubles(x.data() + 2, 4), sum);
      },
      [&] {
        group.all_reduce({x.data(), 4, Scalar::float64}, doubles(y.data(), 5), sum);
      },
      [&] {
        group.all_reduce({x.data(), 4, Datatype::structure(members)}, doubles(y.data(), 8), sum);
      },
      [&] { group.all_reduce(doubles(x.data(), 4), ReduceOperation::bit_and()); },
      [&] { group.all_reduce(doubles(x.data(), 5), ReduceOperation::maximum_with_index()); },
      [&] { group.all_reduce(doubles(x.data(), 4), sum, {.algorithm = "best"}); },
      [&] { group.all_reduce(doubles(x.data(), 4), sum, {.algorithm = "gsb"}); },
      [&] {
        group.all_gather({x.data(), 4, Scalar::float64}, doubles(y.data(), std::int64_t{1} << 60U));
      },
      [&] {
        group.all_gather({x.data(), 4, Scalar::float64}, doubles(y.data(), 5));
      },
      [&] { group.all_to_all(std::vector<Outgoing>(1), std::vector<Incoming>(1)); },
      [&] {
        group.all_gather(Incoming{x.data(), 2, Datatype::hvector(2, 1, 0, Scalar::float64)});
      },
      [&] {
        static_cast<void>(group.subset({0, 0}));
      },
      [&] { static_cast<void>(group.subset({group.size()})); },
  };
  std::string all;
  for (const auto& call : calls) all += heard(call) + "|";
  return fmt::format("{}{}", all, sum_of_ones(group));
}

/// As many groups as may be, and one more; then others may be made again.
std::string too_many(Node& node) {
  const Group world = node.group();
  std::string refused = "none";
  {
    std::vector<Group> groups;
    for (int k = 0; k < 256; ++k) {
      const std::string said = heard([&] { groups.push_back(world.split(0, world.rank())); });
      if (said != "nothing") refused = fmt::format("{} behind {}", said, groups.size());
    }
  }
  return fmt::format("{}; then {}", refused, sum_of_ones(world.split(0, 0)));
}

/// Doubles on the node's device.
struct OnDevice {
  OnDevice(Node& node, std::int64_t doubles)
      : count(doubles),
        buffer(node.device(0), static_cast<std::size_t>(doubles) * sizeof(double)),
        stream(node.device(0).create_stream()) {}
  [[nodiscard]] Incoming all() const { return {buffer.address(), count, Scalar::float64}; }
  std::int64_t count;
  DeviceBuffer buffer;
  std::unique_ptr<Stream> stream;
};

/// The last node is lost while the others' streams wait.
std::string lost_on_stream(Node& node) {
  const Group group = node.group();
  const OnDevice x(node, 100000);
  const std::string barrier = heard([&] { group.barrier(); });
  if (is_last(group)) ::_exit(0);
  std::string said = heard([&] {
    for (int k = 0; k < 50; ++k) group.all_reduce(*x.stream, x.all(), ReduceOperation::sum());
    x.stream->synchronize();
  });
  // A stream that has failed may be destroyed with what it has left.
  x.stream->abandon("the test is over");
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return barrier == "nothing" ? said : barrier;
}

/// Wrong calls on streams, and of the direct way, all of which leave the group as it was.
std::string refused_on_device(Node& node) {
  const Group group = node.group();
  const OnDevice x(node, 100000);
  EmulatedDevice other(7, {});
  const auto foreign = other.create_stream();
  const auto own_sum = make_host_reduce_operation<double>([](double a, double b) { return a + b; },
                                                          {.name = "own sum"});
  std::vector<double> host(100000);
  const Incoming on_host{host.data(), 100000, Scalar::float64};
  std::string all;
  all += heard([&] { group.all_reduce(*foreign, x.all(), ReduceOperation::sum()); }) + "|";
  all += heard([&] { group.all_reduce(*x.stream, x.all(), own_sum); }) + "|";
  all += heard([&] { group.all_reduce(x.all(), own_sum); }) + "|";
  all += heard([&] { group.barrier({.algorithm = "direct"}); }) + "|";
  x.stream->synchronize();
  all += sum_of_ones(group) + "|";
  // What cannot go the direct way where it has to fails the group.
  all += heard([&] {
    group.all_reduce(is_last(group) ? on_host : x.all(), ReduceOperation::sum(),
                     {.algorithm = "direct"});
  });
  return all;
}

std::atomic<bool> may_end{false};

/// A kernel of a program's that waits for something that never comes.
const ByteKernel never_ending{"never_ending", [](const ByteParameters&) {
                                while (!may_end.load(std::memory_order_acquire)) {
                                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                }
                              }};

/// What the stream fails with, while no thread waits for anything.
std::string failure_of(Stream& stream) {
  constexpr std::chrono::milliseconds pause{10};
  for (int k = 0; k < 2000; ++k) {
    if (const auto why = stream.failure()) return *why;
    std::this_thread::sleep_for(pause);
  }
  return "nothing";
}

/// The last one's stream never comes to the operation. Nobody waits for it, and other groups go on.
std::string stuck_on_stream(Node& node) {
  const Group group = node.group();
  const Group beside = group.split(0, group.rank());
  const OnDevice x(node, 100000);
  group.barrier();
  if (is_last(group)) x.stream->launch(never_ending, {}, {});
  // The second one waits for the first one, and is not what is told.
  for (int k = 0; k < 2; ++k) group.all_reduce(*x.stream, x.all(), ReduceOperation::sum());
  const std::string why = failure_of(*x.stream);
  const std::string later = heard([&] { group.barrier(); });
  may_end.store(true, std::memory_order_release);
  return fmt::format("{}; then {}; beside {}", why, later.substr(0, 30), sum_of_ones(beside));
}

/// A stream's kernels take longer than the watchdog waits, but none of what they wait for does.
std::string slow_on_stream(Node& node) {
  const Group group = node.group();
  const OnDevice x(node, 1000);
  const ByteKernel slow{"slow", [](const ByteParameters&) {
                          std::this_thread::sleep_for(std::chrono::milliseconds(1200));
                        }};
  group.barrier();
  for (int k = 0; k < 4; ++k) {
    x.stream->launch(slow, {}, {});
    group.all_reduce(*x.stream, x.all(), ReduceOperation::sum());
  }
  return heard([&] { x.stream->synchronize(); });
}

int run(const std::string& name) {
  const std::map<std::string, std::function<std::string(Node&)>> cases{
      {"wrong", wrong},
      {"wrong_on_one", wrong_on_one},
      {"other_call", other_call},
      {"other_order", other_order},
      {"other_form", other_form},
      {"other_count", other_count},
      {"other_scalar", other_scalar},
      {"late", late},
      {"leaves", leaves},
      {"leaves_behind", leaves_behind},
      {"absent", absent},
      {"beside", beside},
      {"lost", lost},
      {"lost_on_stream", lost_on_stream},
      {"stuck_on_stream", stuck_on_stream},
      {"slow_on_stream", slow_on_stream},
      {"refused_on_device", refused_on_device},
      {"too_many", too_many},
      {"refusals", refusals}};
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string line;
  bool is_good = false;
  try {
    const bool has_devices = name.ends_with("_on_stream") || name.ends_with("_on_device");
    const std::string yaml = fmt::format(
        "runtime: {{cpu_workers: 1, watchdog_seconds: 3, devices: {}}}\n",
        has_devices ? "{backend: emulated, per_node: 1, memory: 256MiB}" : "{backend: none}");
    Node node(Config::from_text(yaml, "failures"), MPI_COMM_WORLD);
    line = cases.at(name)(node);
    const bool stops = !name.starts_with("lost");  // nobody is there to stop with
    if (stops && !node.failed()) node.stop();
    // A node that fails meanwhile, here or elsewhere, does not finalize MPI: nor may this one.
    is_good = stops && !node.failed();
  } catch (const Error& error) {
    line = fmt::format("threw ({}): {}", exit_status(error.code()), error.what());
  } catch (const std::exception& error) {
    line = fmt::format("threw: {}", error.what());
  }
  fmt::print("node {}: {}\n", rank, line);
  std::fflush(nullptr);
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (argc > 2) heddle::many = std::strtoll(argv[2], nullptr, 10);
  const int status = heddle::run(argc > 1 ? argv[1] : "");
  if (status != 0) std::_Exit(0);  // a node has failed: nobody finalizes MPI
  MPI_Finalize();
  return 0;
}
