/// Exchanges of all methods between neighbours that are drawn at random, with parts of many types,
/// on hosts that the ranks only claim to be on; every double is checked, and sentinels lie between
/// them.
///
///   mpiexec -n P exchange_program CASES [orders | BACKEND PER_NODE]
///
/// HEDDLE_REPEATS in the environment is the number of cases instead. `orders`: only rounds that
/// begin in another order on each rank. With a backend of devices, each part is on the host or on
/// any device of the node, at random on each node, and half of the rounds are on streams. Prints
/// "all is well" on node 0.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <future>
#include <list>
#include <memory>
#include <mpi.h>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/exchange.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/group_core.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_internals.hpp"
#include "tests/collectives/group/elements.hpp"
#include "tests/collectives/schedule/random_places.hpp"

namespace heddle {
namespace {

using testing::double_type;
using testing::TypedMemory;

constexpr std::array<const char*, 5> methods{"auto", "neighbours", "aggregated", "alltoallv",
                                             "alltoall"};
constexpr std::array<const char*, 2> both_receives{"early", "late"};

/// Double i that a rank sends to another one as part k in a round.
double sent_value(int from, int to, int k, std::int64_t round, std::int64_t i) {
  std::uint64_t h = static_cast<std::uint64_t>(from) << 50U ^
                    static_cast<std::uint64_t>(to) << 40U ^ static_cast<std::uint64_t>(k) << 34U ^
                    static_cast<std::uint64_t>(round) << 24U ^ static_cast<std::uint64_t>(i);
  h = (h ^ (h >> 33U)) * 0xff51afd7ed558ccdULL;
  h = (h ^ (h >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<double>(h >> 11U) * 0x1p-52 - 1;
}

/// How many doubles go from a rank to another one, part by part.
using Graph = std::vector<std::vector<std::vector<std::int64_t>>>;

Graph random_graph(std::mt19937& common, int size) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(common() % static_cast<std::uint64_t>(n));
  };
  const std::int64_t longest = below(4) == 0 ? 3000 : 40;
  const auto edge = static_cast<std::size_t>(size);
  Graph graph(edge, std::vector<std::vector<std::int64_t>>(edge));
  for (auto& row : graph) {
    for (auto& parts : row) {
      parts.resize(below(2) == 0 ? 0 : static_cast<std::size_t>(below(4)));
      for (std::int64_t& doubles : parts) doubles = 60 * below(longest);
    }
  }
  return graph;
}

/// One rank's memory for a graph, each part with a type of its own.
class Parts {
 public:
  Parts(const Graph& graph, Node& node, int own, std::mt19937& own_random) : own_(own) {
    const auto made = [&](std::int64_t doubles) {
      const testing::DoubleType type = double_type(static_cast<std::uint32_t>(own_random()));
      const auto place =
          static_cast<int>(own_random() % (1 + 2 * static_cast<unsigned>(node.devices())));
      return TypedMemory(type, doubles,
                         place == 0 ? nullptr : &node.device((place - 1) % node.devices()));
    };
    for (int r = 0; r < static_cast<int>(graph.size()); ++r) {
      const auto row = static_cast<std::size_t>(r);
      const auto column = static_cast<std::size_t>(own);
      for (const std::int64_t doubles : graph[column][row]) add(out_, r, made(doubles));
      for (const std::int64_t doubles : graph[row][column]) add(in_, r, made(doubles));
    }
    // The order of ranks is each rank's own; that of the parts of a pair stays.
    const auto shuffle = [&](std::vector<Part>& parts) {
      std::vector<int> ranks(graph.size());
      std::iota(ranks.begin(), ranks.end(), 0);
      std::ranges::shuffle(ranks, own_random);
      std::ranges::stable_sort(
          parts, {}, [&](const Part& p) { return ranks[static_cast<std::size_t>(p.peer)]; });
    };
    shuffle(out_);
    shuffle(in_);
  }

  [[nodiscard]] Exchange exchange(const Group& group, const ExchangeOptions& options) {
    std::vector<OutgoingPart> outgoing;
    std::vector<IncomingPart> incoming;
    for (const Part& part : out_) outgoing.push_back({part.peer, part.memory.out()});
    for (Part& part : in_) incoming.push_back({part.peer, part.memory.in()});
    return group.exchange(outgoing, incoming, options);
  }
  void fill(std::int64_t round) {
    for (Part& part : out_) {
      part.memory.fill(
          [&](std::int64_t i) { return sent_value(own_, part.peer, part.number, round, i); });
      static_cast<void>(part.memory.out());  // brings it to where it lies
    }
  }
  void check(const std::string& what, std::int64_t round) {
    for (Part& part : in_) {
      part.memory.check(
          fmt::format("{}, part {} from rank {}", what, part.number, part.peer),
          [&](std::int64_t i) { return sent_value(part.peer, own_, part.number, round, i); });
    }
  }

 private:
  struct Part {
    int peer;
    int number;  ///< among those of the pair
    TypedMemory memory;
  };
  static void add(std::vector<Part>& to, int peer, TypedMemory memory) {
    const auto same = std::ranges::count(to, peer, &Part::peer);
    to.push_back({peer, static_cast<int>(same), std::move(memory)});
  }

  int own_;
  std::vector<Part> out_;
  std::vector<Part> in_;
};

class Cases {
 public:
  /// `memory` stays until the node has ended.
  Cases(Node& node, Group group, std::uint32_t seed, std::list<std::vector<double>>& memory)
      : node_(node),
        group_(std::move(group)),
        size_(group_.size()),
        own_(group_.rank()),
        seed_(seed),
        common_(seed),
        own_random_(seed * 977 + static_cast<std::uint32_t>(own_)),
        memory_(memory) {
    for (int k = 0; k < 2 * node.devices(); ++k) {
      streams_.push_back(node.device(k % node.devices()).create_stream());
    }
  }

  void run() {
    for (const char* method : methods) {
      for (const char* receives : both_receives) random_parts({method, receives});
      index_lists(method);
      halos(method, nullptr);
      for (int d = 0; d < node_.devices(); ++d) halos(method, &node_.device(d));
      if (!streams_.empty()) streams_wait(method);
    }
    other_orders();
    by_threads();
    one_round_at_a_time();
    dropped();
  }

  /// Several exchanges at once, whose rounds begin and are waited for in another order on each rank
  /// and each time; the group's operations go on beside them.
  void other_orders() {
    constexpr std::size_t together = 6;
    constexpr std::int64_t rounds = 12;
    std::vector<Parts> parts;
    std::vector<Exchange> exchanges;
    parts.reserve(together);
    for (std::size_t k = 0; k < together; ++k) {
      parts.emplace_back(random_graph(common_, size_), node_, own_, own_random_);
      exchanges.push_back(parts.back().exchange(
          group_, {methods.at(common_() % methods.size()),
                   both_receives.at(common_() % both_receives.size()), fmt::format("{}", k)}));
    }
    std::vector<std::size_t> order(together);
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t round = 0; round < rounds; ++round) {
      double sum = own_;
      std::ranges::shuffle(order, own_random_);
      Collective beside =
          group_.begin_all_reduce(Incoming{&sum, 1, Scalar::float64}, ReduceOperation::sum());
      for (const std::size_t k : order) {
        parts[k].fill(round);
        exchanges[k].begin();
      }
      std::ranges::shuffle(order, own_random_);
      for (const std::size_t k : order) {
        if (own_random_() % 2 == 0) static_cast<void>(exchanges[k].done());
        exchanges[k].wait();
        parts[k].check(named(fmt::format("exchange {} of several, round {}", k, round)), round);
      }
      beside.wait();
      expect(sum == size_ * (size_ - 1) / 2, "the sum beside exchanges");
    }
  }

 private:
  [[nodiscard]] std::string named(const std::string& what) const {
    return fmt::format("seed {}, {} ranks: {}", seed_, size_, what);
  }
  void expect(bool is_right, const std::string& what) const {
    if (!is_right) throw Error(ErrorCode::internal, named(what));
  }

  [[nodiscard]] Stream& any_stream_of(const Device& device) {
    for (;;) {
      Stream& stream = any_stream();
      if (&stream.device() == &device) return stream;
    }
  }
  [[nodiscard]] Stream& any_stream() { return *streams_[own_random_() % streams_.size()]; }

  /// Half of those with devices on a stream, and waited for by another one alone.
  void run_round(const Exchange& exchange) {
    if (streams_.empty() || own_random_() % 2 == 0) {
      exchange.begin();
      while (own_random_() % 3 == 0 && !exchange.done()) {
      }
      return exchange.wait();
    }
    const ExchangeRound round = exchange.begin(any_stream());
    Stream& behind = any_stream();
    round.arrived(behind);
    if (own_random_() % 2 == 0) round.arrived(any_stream());
    behind.synchronize();
    if (own_random_() % 2 == 0) exchange.wait();
  }

  /// A round begins when its stream comes there, and not before; streams that wait for it go on
  /// when it is over; the stream that it begins on does not wait.
  void streams_wait(const char* method) {
    Device& device = node_.device(0);
    const std::unique_ptr<Stream> first = device.create_stream();
    const std::unique_ptr<Stream> second = node_.device(node_.devices() - 1).create_stream();
    auto* const word = new (device.allocate_host(64)) std::atomic<std::uint64_t>(0);
    Parts parts(random_graph(common_, size_), node_, own_, own_random_);
    const Exchange exchange = parts.exchange(group_, {.method = method, .name = "behind"});
    for (std::int64_t round = 0; round < 3; ++round) {
      const auto value = static_cast<std::uint64_t>(round) + 1;
      first->await_word(*word, value);
      const ExchangeRound begun = exchange.begin(*first);
      expect(!exchange.done(), "a round is over before its stream has come there");
      const std::unique_ptr<Event> event = second->device().create_event(EventTiming::off);
      // A node that is alone moves its messages in arrived().
      const bool is_alone = node_.size() == 1;
      if (!is_alone) begun.arrived(*second);
      second->record(*event);
      parts.fill(round);
      expect(is_alone || event->query() == EventState::pending,
             "a stream does not wait for a round");
      // Release pairs with the stream's reading.
      word->store(value, std::memory_order_release);
      if (is_alone) begun.arrived(*second);
      first->synchronize();
      second->synchronize();
      expect(exchange.done(), "a stream has not waited for a round");
      begun.arrived(*second);
      second->synchronize();
      parts.check(named(fmt::format("{}, behind a stream, round {}", method, round)), round);
    }
    device.free_host(word);
    stream_goes_on(exchange, parts);
  }

  /// The first rank's stream goes on though the others have not begun the round.
  void stream_goes_on(const Exchange& exchange, Parts& parts) {
    constexpr std::int64_t round = 7;
    Stream& stream = any_stream();
    parts.fill(round);
    if (own_ == 0) {
      exchange.begin(stream);
      stream.synchronize();
    }
    group_.barrier();
    if (own_ != 0) exchange.begin(stream);
    exchange.wait();
    parts.check(named("a stream that goes on"), round);
  }

  void random_parts(const ExchangeOptions& options) {
    Parts parts(random_graph(common_, size_), node_, own_, own_random_);
    const Exchange exchange = parts.exchange(group_, options);
    expect(exchange.done(), "done before the first round");
    exchange.wait();
    constexpr std::int64_t rounds = 4;
    for (std::int64_t round = 0; round < rounds; ++round) {
      parts.fill(round);
      run_round(exchange);
      parts.check(named(fmt::format("{}, {}, round {}", options.method, options.receives, round)),
                  round);
    }
    const ExchangeReport report = exchange.report();
    expect(report.rounds == rounds && report.seconds > 0 && !report.others.empty(), "the report");
    expect(options.method == "auto" || report.method == options.method, "the method");
  }

  /// The sets O and R of 003 section 2.2: each rank has elements of a vector, sends those that
  /// others need by a list of indices, and receives into the vector's end.
  void index_lists(const char* method) {
    constexpr std::int64_t each = 50;
    std::vector<OutgoingPart> outgoing;
    std::vector<IncomingPart> incoming;
    std::vector<std::pair<int, std::int64_t>> received;  // owner and index
    std::vector<std::vector<std::vector<std::int64_t>>> needed(static_cast<std::size_t>(size_));
    for (auto& of_rank : needed) {
      of_rank.resize(static_cast<std::size_t>(size_));
      for (auto& indices : of_rank) {
        for (std::int64_t i = 0; i < each; ++i) {
          if (common_() % 3 == 0) indices.push_back(i);
        }
        std::ranges::shuffle(indices, common_);
      }
    }
    std::vector<double> x(static_cast<std::size_t>(each * (size_ + 1)), -7);
    std::int64_t next = each;
    for (int r = 0; r < size_; ++r) {
      const auto& from_here = needed[static_cast<std::size_t>(r)][static_cast<std::size_t>(own_)];
      const auto& from_there = needed[static_cast<std::size_t>(own_)][static_cast<std::size_t>(r)];
      if (r == own_) continue;
      std::vector<std::int64_t> offsets;
      for (const std::int64_t i : from_here) offsets.push_back(8 * i);
      outgoing.push_back({r, {x.data(), 1, Datatype::hindexed_block(1, offsets, Scalar::float64)}});
      const auto count = static_cast<std::int64_t>(from_there.size());
      incoming.push_back({r, {x.data() + next, count, Scalar::float64}});
      for (const std::int64_t i : from_there) received.emplace_back(r, i);
      next += count;
    }
    const Exchange exchange =
        group_.exchange(outgoing, incoming, {.method = method, .name = "O, R"});
    for (std::int64_t round = 0; round < 3; ++round) {
      for (std::int64_t i = 0; i < each; ++i) {
        x[static_cast<std::size_t>(i)] = sent_value(own_, 0, 0, round, i);
      }
      exchange.run();
      for (std::size_t k = 0; k < x.size() - static_cast<std::size_t>(each); ++k) {
        const double wanted = k < received.size()
                                  ? sent_value(received[k].first, 0, 0, round, received[k].second)
                                  : -7;
        expect(x[static_cast<std::size_t>(each) + k] == wanted,
               fmt::format("{}, lists of indices: element {} of R", method, k));
      }
    }
  }

  /// Columns of a periodic grid in a row of ranks, of which each has the outer two from others, and
  /// the rows above and below from itself.
  void halos(const char* method, Device* device) {
    constexpr std::int64_t n = 9;  // in both directions, halos included
    std::vector<double> u(n * n);
    const std::size_t bytes = u.size() * sizeof(double);
    std::optional<DeviceBuffer> on_device;
    if (device != nullptr) on_device.emplace(*device, bytes);
    auto* const memory =
        device == nullptr ? u.data() : reinterpret_cast<double*>(on_device->address());
    const auto at = [&](std::int64_t row, std::int64_t column) -> double& {
      return u[static_cast<std::size_t>(row * n + column)];
    };
    const auto place = [&](std::int64_t row, std::int64_t column) {
      return memory + row * n + column;
    };
    const auto column = Datatype::vector(n - 2, 1, n, Scalar::float64);
    const auto row = Datatype::contiguous(n - 2, Scalar::float64);
    const int left = (own_ + size_ - 1) % size_;
    const int right = (own_ + 1) % size_;
    // With two ranks both neighbours are the same: in their order what goes left comes from the
    // right.
    const std::vector<OutgoingPart> outgoing{{left, {place(1, 1), 1, column}},
                                             {right, {place(1, n - 2), 1, column}},
                                             {own_, {place(1, 1), 1, row}},
                                             {own_, {place(n - 2, 1), 1, row}}};
    const std::vector<IncomingPart> incoming{{right, {place(1, n - 1), 1, column}},
                                             {left, {place(1, 0), 1, column}},
                                             {own_, {place(n - 1, 1), 1, row}},
                                             {own_, {place(0, 1), 1, row}}};
    const Exchange exchange =
        group_.exchange(outgoing, incoming, {.method = method, .name = "halo"});
    const auto inner = [](int rank, std::int64_t round, std::int64_t r, std::int64_t c) {
      return static_cast<double>(1000 * round + 100 * rank) + static_cast<double>(10 * r + c) / 128;
    };
    for (std::int64_t round = 1; round < 4; ++round) {
      std::ranges::fill(u, -1.0);
      for (std::int64_t r = 1; r < n - 1; ++r) {
        for (std::int64_t c = 1; c < n - 1; ++c) at(r, c) = inner(own_, round, r, c);
      }
      if (device == nullptr) {
        exchange.run();
      } else {
        // All of it behind the copy, and the copy back behind the round.
        Stream& stream = any_stream_of(*device);
        stream.copy({on_device->address(), device}, {u.data(), nullptr}, bytes);
        exchange.begin(stream).arrived(stream);
        stream.copy({u.data(), nullptr}, {on_device->address(), device}, bytes);
        stream.synchronize();
      }
      for (std::int64_t r = 0; r < n; ++r) {
        for (std::int64_t c = 0; c < n; ++c) {
          const bool is_edge_row = r == 0 || r == n - 1;
          const bool is_edge_column = c == 0 || c == n - 1;
          double wanted = inner(own_, round, r, c);
          if (is_edge_row) wanted = inner(own_, round, r == 0 ? n - 2 : 1, c);
          if (is_edge_column) wanted = inner(c == 0 ? left : right, round, r, c == 0 ? n - 2 : 1);
          if (is_edge_row && is_edge_column) wanted = -1;
          expect(at(r, c) == wanted, fmt::format("{}, halo at ({}, {})", method, r, c));
        }
      }
    }
  }

  /// Each thread has an exchange for itself.
  void by_threads() {
    std::list<Parts> parts;
    std::vector<std::future<void>> threads;
    std::vector<Exchange> exchanges;
    for (const char* name : {"first", "second"}) {
      parts.emplace_back(random_graph(common_, size_), node_, own_, own_random_);
      exchanges.push_back(parts.back().exchange(group_, {.name = name}));
    }
    for (Parts& own : parts) {
      threads.push_back(std::async(std::launch::async, [&, k = threads.size()] {
        for (std::int64_t round = 0; round < 10; ++round) {
          own.fill(round);
          exchanges[k].run();
          own.check(named(fmt::format("thread {}, round {}", k, round)), round);
        }
      }));
    }
    for (std::future<void>& thread : threads) thread.get();
  }

  /// A second begin() is refused, and the round goes on.
  void one_round_at_a_time() {
    if (size_ < 2) return;
    double mine = own_;
    double theirs = -1;
    const int left = (own_ + size_ - 1) % size_;
    const int right = (own_ + 1) % size_;
    const std::vector<OutgoingPart> outgoing{{right, {&mine, 1, Scalar::float64}}};
    const std::vector<IncomingPart> incoming{{left, {&theirs, 1, Scalar::float64}}};
    const Exchange exchange =
        group_.exchange(outgoing, incoming, {.method = "neighbours", .name = "ring"});
    // The last rank has begun nothing when rank 0, which waits for it, begins again.
    if (own_ == 0) {
      exchange.begin();
      expect(!exchange.done(), "a round whose sender has not begun it is over");
      std::string refusal;
      try {
        exchange.begin();
      } catch (const Error& error) {
        refusal = error.what();
      }
      expect(refusal ==
                 "round 2 of exchange 'ring' cannot begin, as round 1 is under way; wait for it "
                 "first",
             "a second round is refused: " + refusal);
    }
    group_.barrier();
    if (own_ != 0) exchange.begin();
    exchange.wait();
    exchange.wait();
    expect(theirs == left, "a round that was begun twice");
    const ExchangeReport report = exchange.report();
    expect(report.rounds == 1 && report.messages == 1 && report.bytes == 8, "the report of a ring");
    expect(report.packed_bytes == 0, "elements in one piece are not packed");
  }

  /// A round goes on when its handle is gone, beside others.
  void dropped() {
    constexpr std::int64_t count = 5000;
    const int left = (own_ + size_ - 1) % size_;
    const int right = (own_ + 1) % size_;
    const auto ring = [&](std::vector<double>& memory, const char* name) {
      const std::vector<OutgoingPart> outgoing{{right, {memory.data(), count, Scalar::float64}}};
      const std::vector<IncomingPart> incoming{
          {left, {memory.data() + count, count, Scalar::float64}}};
      return group_.exchange(outgoing, incoming, {.method = "neighbours", .name = name});
    };
    std::vector<double>& forgotten = memory_.emplace_back(2 * count, own_);
    ring(forgotten, "dropped").begin();
    std::vector<double> kept(2 * count, own_);
    ring(kept, "kept").run();
    expect(kept[count] == left && kept.back() == left, "an exchange beside one that was dropped");
  }

  Node& node_;
  Group group_;
  std::vector<std::unique_ptr<Stream>> streams_;  ///< two of each device
  int size_;
  int own_;
  std::uint32_t seed_;
  std::mt19937 common_;
  std::mt19937 own_random_;
  std::list<std::vector<double>>& memory_;  ///< of rounds that nobody waits for
};

/// All nodes on hosts that they claim to be on, drawn alike on all of them.
Group on_claimed_hosts(Node& node, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto messages = NodeInternals(node).user_messages();
  collectives::CollectiveRates rates;
  rates.levels.fill({1e-6, 5e9, 8192, 4e-6, 8e9});
  rates.levels.back() = {20e-6, 1e9, 8192, 60e-6, 1e9};
  collectives::GroupCore::Options options{
      {},
      collectives::Rank{node.rank()},
      collectives::Places(collectives::random_places(random, node.size())),
      p2p::ChannelId{messages->next_channel()},
      rates};
  for (std::int32_t r = 0; r < node.size(); ++r) options.nodes.emplace_back(r);
  messages->take_channels(options.channel.value() + 1);
  return Group(collectives::GroupCore::make(messages, std::move(options)));
}

void run(Node& node, int cases, bool only_orders, std::list<std::vector<double>>& memory) {
  const Group world = node.group();
  for (std::uint32_t seed = 1; std::cmp_less_equal(seed, cases); ++seed) {
    Cases one(node, seed % 3 == 1 ? world : on_claimed_hosts(node, seed), seed, memory);
    only_orders ? one.other_orders() : one.run();
  }
  if (only_orders) return;
  // On a part of the nodes, whose ranks are not the nodes' numbers.
  Cases(node, world.split(world.rank() % 2, -world.rank()), 1000, memory).run();
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  std::list<std::vector<double>> memory;
  try {
    const std::string devices =
        argc > 3 ? fmt::format(
                       "{{backend: {}, per_node: {}, memory: 256MiB}}, messages: "
                       "{{device_memory: 16MiB}}",
                       argv[2], argv[3])
                 : "{backend: none}";
    heddle::Node node(heddle::Config::from_text(
                          fmt::format("runtime: {{cpu_workers: 1, devices: {}}}", devices), "test"),
                      MPI_COMM_WORLD);
    const char* const repeats = std::getenv("HEDDLE_REPEATS");
    const char* const cases = repeats != nullptr ? repeats : argc > 1 ? argv[1] : "6";
    heddle::run(node, std::atoi(cases), argc > 2 && std::string(argv[2]) == "orders", memory);
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
