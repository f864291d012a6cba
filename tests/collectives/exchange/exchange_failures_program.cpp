/// What goes wrong when exchanges are made and in their rounds, and what all members hear of it.
///
///   mpiexec -n N exchange_failures_program CASE
///
/// Each node prints one line: how it went.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <mpi.h>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "node-runtime/collectives/exchange.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/device/devices.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

constexpr std::int64_t ring_count = 20000;

/// "(2) text" of what a call throws, or "nothing".
std::string heard_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return fmt::format("({}) {}", exit_status(error.code()), error.what());
  }
  return "nothing";
}

int left_of(const Group& group) {
  return (group.rank() + group.size() - 1) % group.size();
}
int right_of(const Group& group) {
  return (group.rank() + 1) % group.size();
}
bool comes_last(const Group& group) {
  return group.rank() == group.size() - 1;
}

/// To the right and from the left.
class Ring {
 public:
  explicit Ring(const Group& group, const std::string& method = "neighbours")
      : mine_(ring_count, group.rank()), theirs_(ring_count, -1), exchange_(make(group, method)) {}

  [[nodiscard]] const Exchange& exchange() const { return exchange_; }
  [[nodiscard]] std::string run() {
    const std::string said = heard_of([&] { exchange_.run(); });
    return said == "nothing" ? fmt::format("from {}", theirs_.back()) : said;
  }

 private:
  Exchange make(const Group& group, const std::string& method) {
    const std::vector<OutgoingPart> outgoing{
        {right_of(group), {mine_.data(), ring_count, Scalar::float64}}};
    const std::vector<IncomingPart> incoming{
        {left_of(group), {theirs_.data(), ring_count, Scalar::float64}}};
    return group.exchange(outgoing, incoming, {.method = method, .name = "ring"});
  }

  std::vector<double> mine_;
  std::vector<double> theirs_;
  Exchange exchange_;
};

std::string made(const Group& group, const std::vector<OutgoingPart>& outgoing,
                 const std::vector<IncomingPart>& incoming, const ExchangeOptions& options = {}) {
  return heard_of([&] { static_cast<void>(group.exchange(outgoing, incoming, options)); });
}

/// Calls that make no sense on all ranks; the group goes on.
std::string refusals(const Group& group) {
  std::array<double, 16> x{};
  const auto out = [&](int to, double* at, std::int64_t count, const Datatype& type) {
    return std::vector<OutgoingPart>{{to, {at, count, type}}};
  };
  const auto in = [&](int from, double* at, std::int64_t count, const Datatype& type) {
    return std::vector<IncomingPart>{{from, {at, count, type}}};
  };
  const auto twice = Datatype::hvector(2, 1, 0, Scalar::float64);
  const std::vector<std::string> said{
      made(group, out(group.size(), x.data(), 1, Scalar::float64), {}),
      made(group, {}, in(-1, x.data(), 1, Scalar::float64), {.name = "halo"}),
      made(group, out(0, nullptr, 4, Scalar::float64), {}),
      made(group, {}, in(0, x.data(), -4, Scalar::float64)),
      made(group, {}, in(0, x.data(), 1, twice)),
      made(group, {}, {{0, {&x[0], 4, Scalar::float64}}, {1, {&x[3], 4, Scalar::float64}}}),
      made(group, out(0, &x[0], 4, Scalar::float64), in(0, &x[3], 4, Scalar::float64)),
      made(group, {}, {}, {.method = "best"}),
      made(group, {}, {}, {.receives = "never"}),
      Ring(group).run()};
  std::string all;
  for (const std::string& one : said) all += one + "|";
  return all;
}

/// One rank's call makes no sense.
std::string refused_on_one(const Group& group) {
  double x = 0;
  const std::vector<OutgoingPart> outgoing{
      {comes_last(group) ? -5 : group.rank(), {&x, 0, Scalar::float64}}};
  return made(group, outgoing, {}, {.name = "halo"}) + "; then " + Ring(group).run();
}

/// Members whose parts do not fit.
std::string misfits(const Group& group) {
  std::array<double, 16> x{};
  std::array<float, 16> y{};
  const int right = right_of(group);
  const int left = left_of(group);
  const std::vector<OutgoingPart> four{{right, {x.data(), 4, Scalar::float64}}};
  const std::vector<IncomingPart> taken{
      {left, {&x[8], comes_last(group) ? 5 : 4, Scalar::float64}}};
  const std::vector<IncomingPart> floats{{left,
                                          {y.data(), comes_last(group) ? 8 : 4,
                                           comes_last(group) ? Scalar::float32 : Scalar::float64}}};
  const std::vector<IncomingPart> fit{{left, {&x[8], 4, Scalar::float64}}};
  const std::vector<IncomingPart> none;
  return made(group, four, taken, {.name = "halo"}) + "|" +
         made(group, four, comes_last(group) ? floats : fit) + "|" +
         made(group, four, comes_last(group) ? none : fit) + "|" +
         made(group, four, fit, {.method = comes_last(group) ? "neighbours" : "aggregated"}) + "|" +
         Ring(group).run();
}

/// The last one does not begin the second round while the others wait.
std::string absent(const Group& group) {
  Ring ring(group);
  const std::string first = ring.run();
  group.barrier();
  if (comes_last(group)) std::this_thread::sleep_for(std::chrono::seconds(6));
  return first + "; then " + ring.run();
}

/// The group fails with a round under way; another group's exchanges go on.
std::string failed_group(const Group& group) {
  const Group other = group.split(0, group.rank());
  Ring beside(other);
  Ring ring(group);
  static_cast<void>(ring.run());
  // The group may have failed by now; then wait() says so as well.
  if (!comes_last(group)) static_cast<void>(heard_of([&] { ring.exchange().begin(); }));
  std::vector<double> x(30000);
  const auto call = [&] {
    comes_last(group)
        ? group.all_reduce(Incoming{x.data(), 30000, Scalar::float64}, ReduceOperation::maximum())
        : group.all_reduce(Incoming{x.data(), 30000, Scalar::float64}, ReduceOperation::sum());
  };
  static_cast<void>(heard_of(call));
  const std::string said = heard_of([&] {
    if (comes_last(group)) ring.exchange().begin();
    ring.exchange().wait();
  });
  const std::string again = heard_of([&] { ring.exchange().begin(); });
  return fmt::format("{}; again {}; then {}", said.substr(0, 30), again.substr(0, 30),
                     beside.run());
}

/// The last node is lost in a round.
std::string lost(const Group& group) {
  Ring ring(group);
  static_cast<void>(ring.run());
  group.barrier();
  if (comes_last(group)) ::_exit(0);
  std::string said = ring.run();
  for (int k = 0; k < 100 && said.starts_with("from"); ++k) said = ring.run();
  // Who hears it later must hear of the lost node, and not of this one.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return said;
}

/// To the right and from the left, in parts of device memory that have to be packed.
Exchange device_ring(const Group& group, const DeviceBuffer& memory) {
  auto* const first = reinterpret_cast<double*>(memory.address());
  const auto type = Datatype::vector(ring_count, 1, 2, Scalar::float64);
  const std::vector<OutgoingPart> outgoing{{right_of(group), {first, 1, type}}};
  const std::vector<IncomingPart> incoming{{left_of(group), {first + 1, 1, type}}};
  return group.exchange(outgoing, incoming, {.name = "ring"});
}

/// Streams of a device that is none of the node's.
std::string wrong_streams(Node& node) {
  const Group group = node.group();
  Ring ring(group);
  DeviceOptions options;
  options.backend = DeviceBackend::emulated;
  options.emulated.memory_bytes = 1 << 20;
  const DeviceSet others = make_devices(options);
  const auto stream = others.devices.front()->create_stream();
  const std::string begun = heard_of([&] { ring.exchange().begin(*stream); });
  const std::string arrived = heard_of([&] { ring.exchange().begin().arrived(*stream); });
  ring.exchange().wait();
  stream->synchronize();
  return begun + "|" + arrived + "|" + ring.run();
}

/// The last node is lost while other streams wait for a round; with `is_behind` the round itself
/// waits for a stream that comes there later.
std::string lost_by_streams(Node& node, bool is_behind) {
  const Group group = node.group();
  Device& device = node.device(0);
  const DeviceBuffer memory(device, 2 * ring_count * sizeof(double));
  const Exchange exchange = device_ring(group, memory);
  const auto first = device.create_stream();
  const auto second = device.create_stream();
  exchange.begin(*first).arrived(*second);
  second->synchronize();
  group.barrier();
  if (comes_last(group)) ::_exit(0);
  auto* const word = new (device.allocate_host(64)) std::atomic<std::uint64_t>(0);
  if (is_behind) first->await_word(*word, 1);
  std::string said = "nothing";
  for (int k = 0; k < 100 && said == "nothing"; ++k) {
    const auto waiting = device.create_stream();
    said = heard_of([&] {
      exchange.begin(*first).arrived(*waiting);
      waiting->synchronize();
    });
  }
  const std::string again = heard_of([&] { exchange.begin(*first); });
  word->store(1, std::memory_order_release);
  first->synchronize();
  device.free_host(word);
  // Who hears it later must hear of the lost node, and not of this one.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return said + "; again " + again;
}

/// The last one's stream never comes to a round, which nobody waits for but a stream.
std::string stuck_streams(Node& node) {
  const Group group = node.group();
  Device& device = node.device(0);
  const DeviceBuffer memory(device, 2 * ring_count * sizeof(double));
  const Exchange exchange = device_ring(group, memory);
  const auto first = device.create_stream();
  const auto second = device.create_stream();
  exchange.begin(*first).arrived(*second);
  second->synchronize();
  auto* const word = new (device.allocate_host(64)) std::atomic<std::uint64_t>(0);
  if (comes_last(group)) first->await_word(*word, 1);
  exchange.begin(*first).arrived(*second);
  const std::string said = heard_of([&] { second->synchronize(); });
  const std::string again = heard_of([&] { exchange.begin(*first); });
  word->store(1, std::memory_order_release);
  first->synchronize();
  device.free_host(word);
  return said + "; again " + again.substr(0, 30);
}

using Case = std::function<std::string(Node&)>;

template <class Said>
Case of_group(const Said& said) {
  return [said](Node& node) { return said(node.group()); };
}

int run(const std::string& name) {
  const std::map<std::string, Case> cases{
      {"refusals", of_group(refusals)},
      {"refused_on_one", of_group(refused_on_one)},
      {"misfits", of_group(misfits)},
      {"absent", of_group(absent)},
      {"failed_group", of_group(failed_group)},
      {"lost", of_group(lost)},
      {"wrong_streams", wrong_streams},
      {"stuck_streams", stuck_streams},
      {"lost_with_streams", [](Node& node) { return lost_by_streams(node, false); }},
      {"lost_behind_streams", [](Node& node) { return lost_by_streams(node, true); }}};
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string line;
  bool is_good = false;
  try {
    const std::string devices = name.ends_with("streams")
                                    ? "{backend: emulated, per_node: 1, memory: 64MiB}"
                                    : "{backend: none}";
    const std::string yaml =
        fmt::format("runtime: {{cpu_workers: 1, watchdog_seconds: 3, devices: {}}}\n", devices);
    Node node(Config::from_text(yaml, "failures"), MPI_COMM_WORLD);
    line = cases.at(name)(node);
    is_good = !node.failed() && !name.starts_with("lost");  // nobody is there to stop with
    if (is_good) node.stop();
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
  const int status = heddle::run(argc > 1 ? argv[1] : "");
  if (status != 0) std::_Exit(0);  // a node has failed: nobody finalizes MPI
  MPI_Finalize();
  return 0;
}
