/// All operations of groups, on all nodes and on parts of them, with elements of many types, ranks
/// that describe them differently, and every double checked; sentinels lie between them.
///
///   mpiexec -n P group_program CASES [BACKEND PER_NODE]
///
/// With a backend of devices, memory is on the host or on any device of the node, at random on each
/// node, and half of the operations are on a stream. Prints "all is well" on node 0.

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <mpi.h>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node-runtime/collectives/group.hpp"
#include "node-runtime/device/cuda/cuda.hpp"
#include "node-runtime/node.hpp"
#include "tests/collectives/group/elements.hpp"

namespace heddle {
namespace {

using testing::double_type;
using testing::TypedMemory;

/// Double i of the input of a rank.
double value(int rank, std::int64_t i, std::uint32_t seed) {
  std::uint64_t h = (static_cast<std::uint64_t>(rank) << 40U) ^ static_cast<std::uint64_t>(i) ^
                    (std::uint64_t{seed} << 20U);
  h = (h ^ (h >> 33U)) * 0xff51afd7ed558ccdULL;
  h = (h ^ (h >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  return static_cast<double>(h >> 11U) * 0x1p-52 - 1;
}

/// The sum of ranks [begin, end) in the bracket, by its definition.
double bracket(int begin, int end, std::int64_t i, std::uint32_t seed) {
  if (end - begin == 1) return value(begin, i, seed);
  int left = 1;
  while (2 * left < end - begin) left *= 2;
  const double a = bracket(begin, begin + left, i, seed);
  return a + bracket(begin + left, end, i, seed);
}

/// The operation in its blocking form, or on a stream, which is waited for.
#define HEDDLE_BLOCKING_OR_ON_STREAM(operation)   \
  template <class... Arguments>                   \
  void operation(const Arguments&... arguments) { \
    if (stream_ == nullptr || below(2) == 0) {    \
      return group_.operation(arguments...);      \
    }                                             \
    group_.operation(*stream_, arguments...);     \
    stream_->synchronize();                       \
  }

class Cases {
 public:
  Cases(Node& node, Group group, std::uint32_t seed)
      : node_(node),
        group_(std::move(group)),
        size_(group_.size()),
        own_(group_.rank()),
        seed_(seed),
        common_(seed),
        own_random_(seed * 977 + static_cast<std::uint32_t>(own_)) {
    if (node.devices() > 0) {
      stream_ = node.device(static_cast<int>(seed) % node.devices()).create_stream();
    }
  }

  void run() {
    const std::int64_t longest = below(3) == 0 ? 20000 : 40;
    n_ = 60 * below(longest);
    root_ = static_cast<int>(below(size_));
    moves();
    reductions();
    lists();
    in_flight();
    if (size_ > 1 && node_.devices() > 0) {
      shared_buffer();
      tree_buffers();
    }
    barrier();
  }

 private:
  /// The same on all ranks, and each its own.
  [[nodiscard]] std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(common_() % static_cast<std::uint64_t>(n));
  }
  [[nodiscard]] TypedMemory memory(std::int64_t doubles) {
    const testing::DoubleType type = double_type(static_cast<std::uint32_t>(own_random_()));
    const auto place =
        static_cast<int>(own_random_() % (1 + 2 * static_cast<unsigned>(node_.devices())));
    return {type, doubles, place == 0 ? nullptr : &node_.device((place - 1) % node_.devices()),
            [group = group_](const void* at) { group.release(at); }};
  }
  HEDDLE_BLOCKING_OR_ON_STREAM(barrier)
  HEDDLE_BLOCKING_OR_ON_STREAM(broadcast)
  HEDDLE_BLOCKING_OR_ON_STREAM(scatter)
  HEDDLE_BLOCKING_OR_ON_STREAM(gather)
  HEDDLE_BLOCKING_OR_ON_STREAM(all_gather)
  HEDDLE_BLOCKING_OR_ON_STREAM(all_to_all)
  HEDDLE_BLOCKING_OR_ON_STREAM(reduce)
  HEDDLE_BLOCKING_OR_ON_STREAM(all_reduce)
  HEDDLE_BLOCKING_OR_ON_STREAM(reduce_scatter)
  HEDDLE_BLOCKING_OR_ON_STREAM(scan)
  HEDDLE_BLOCKING_OR_ON_STREAM(exclusive_scan)
  [[nodiscard]] TypedMemory filled(std::int64_t doubles) {
    TypedMemory made = memory(doubles);
    made.fill([&](std::int64_t i) { return value(own_, i, seed_); });
    return made;
  }
  [[nodiscard]] CollectiveOptions options(std::initializer_list<const char*> algorithms) {
    CollectiveOptions made;
    const std::vector<const char*> all(algorithms);
    made.algorithm = all[static_cast<std::size_t>(below(static_cast<std::int64_t>(all.size())))];
    if (below(2) == 0) made.fragment_bytes = 8 * (1 + below(1000));
    made.copies = static_cast<Copies>(below(copies_names.size()));
    // Ranks of one host that have devices.
    const bool is_by_buffers = made.algorithm == "gsb" || made.algorithm == "btb";
    if (is_by_buffers && node_.devices() == 0) made.algorithm = "auto";
    return made;
  }
  [[nodiscard]] std::string named(const char* what) const {
    return fmt::format("seed {}, {} ranks, {} doubles, root {}: {}", seed_, size_, n_, root_, what);
  }

  void moves() {
    const auto trees = {"auto", "flat", "chain", "binary", "binomial", "split_binary"};
    TypedMemory sent = own_ == root_ ? filled(n_) : memory(n_);
    broadcast(sent.in(), root_, options({"auto", "flat", "chain", "split_binary", "gsb", "btb"}));
    sent.check(named("broadcast"), [&](std::int64_t i) { return value(root_, i, seed_); });

    TypedMemory all = filled(n_ * size_);
    TypedMemory part = memory(n_);
    scatter(all.out_of(size_), part.in(), root_, options({"auto", "flat", "binomial"}));
    part.check(named("scatter"),
               [&](std::int64_t i) { return value(root_, own_ * n_ + i, seed_); });

    TypedMemory mine = filled(n_);
    TypedMemory gathered = memory(n_ * size_);
    gather(mine.out(), gathered.in_of(size_), root_, options({"auto", "flat", "chain"}));
    const auto by_rank = [&](std::int64_t i) {
      return value(static_cast<int>(i / n_), i % n_, seed_);
    };
    gathered.check(named("gather"), 0, own_ == root_ ? n_ * size_ : 0, by_rank);

    TypedMemory everywhere = memory(n_ * size_);
    all_gather(mine.out(), everywhere.in_of(size_), options(trees));
    everywhere.check(named("all_gather"), by_rank);
    TypedMemory in_place = memory(n_ * size_);
    for (std::int64_t i = 0; i < n_; ++i) in_place[own_ * n_ + i] = value(own_, i, seed_);
    all_gather(in_place.in_of(size_));
    in_place.check(named("all_gather in place"), by_rank);

    TypedMemory exchanged = memory(n_ * size_);
    all_to_all(all.out_of(size_), exchanged.in_of(size_),
               options({"auto", "pairwise", "leaders", "bruck"}));
    exchanged.check(named("all_to_all"), [&](std::int64_t i) {
      return value(static_cast<int>(i / n_), own_ * n_ + i % n_, seed_);
    });
  }

  void reductions() {
    const auto sum = ReduceOperation::sum();
    const auto whole = [&](std::int64_t i) { return bracket(0, size_, i, seed_); };
    const TypedMemory from = filled(n_);
    TypedMemory to = memory(n_);
    reduce(from.out(), to.in(), sum, root_, options({"auto", "chain", "binary", "gsb", "btb"}));
    to.check(named("reduce"), 0, own_ == root_ ? n_ : 0, whole);

    TypedMemory everywhere = memory(n_);
    const auto ways = {
        "auto", "reduce_broadcast", "scatter_gather", "chain", "split_binary", "gsb", "btb", "btb"};
    all_reduce(from.out(), everywhere.in(), sum, options(ways));
    everywhere.check(named("all_reduce"), whole);
    TypedMemory in_place = filled(n_);
    all_reduce(in_place.in(), sum, options(ways));
    in_place.check(named("all_reduce in place"), whole);

    const TypedMemory blocks = filled(n_ * size_);
    TypedMemory block = memory(n_);
    reduce_scatter(blocks.out_of(size_), block.in(), sum);
    block.check(named("reduce_scatter"),
                [&](std::int64_t i) { return bracket(0, size_, own_ * n_ + i, seed_); });

    TypedMemory prefix = memory(n_);
    scan(from.out(), prefix.in(), sum);
    prefix.check(named("scan"), [&](std::int64_t i) { return bracket(0, own_ + 1, i, seed_); });
    TypedMemory scanned = filled(n_);
    scan(scanned.in(), sum);
    scanned.check(named("scan in place"),
                  [&](std::int64_t i) { return bracket(0, own_ + 1, i, seed_); });
    TypedMemory before = memory(n_);
    exclusive_scan(from.out(), before.in(), sum);
    before.check(named("exclusive_scan"), 0, own_ > 0 ? n_ : 0,
                 [&](std::int64_t i) { return bracket(0, own_, i, seed_); });

    std::vector<std::int32_t> integers(static_cast<std::size_t>(n_));
    for (std::size_t i = 0; i < integers.size(); ++i) {
      integers[i] = own_ * 7 - static_cast<std::int32_t>(i % 5) * own_;
    }
    all_reduce(Incoming{integers.data(), n_, Scalar::int32}, ReduceOperation::maximum());
    for (std::size_t i = 0; i < integers.size(); ++i) {
      std::int32_t most = 0;
      for (int r = 0; r < size_; ++r) {
        most = std::max(most, r * 7 - static_cast<std::int32_t>(i % 5) * r);
      }
      if (integers[i] != most) {
        throw Error(ErrorCode::internal, named("all_reduce of integers"));
      }
    }
  }

  /// Elements that rank r has for rank s, in lists.
  [[nodiscard]] std::int64_t doubles_of(int r, int s) const {
    return 60 * ((r * 5 + s * 3 + static_cast<int>(seed_)) % 4);
  }

  void lists() {
    std::vector<TypedMemory> outs;
    std::vector<TypedMemory> ins;
    std::vector<Outgoing> from;
    std::vector<Incoming> to;
    for (int r = 0; r < size_; ++r) {
      outs.push_back(filled(doubles_of(own_, r)));
      ins.push_back(memory(doubles_of(r, own_)));
    }
    for (int r = 0; r < size_; ++r) {
      from.push_back(outs[static_cast<std::size_t>(r)].out());
      to.push_back(ins[static_cast<std::size_t>(r)].in());
    }
    all_to_all(std::span<const Outgoing>(from), std::span<const Incoming>(to));
    for (int r = 0; r < size_; ++r) {
      ins[static_cast<std::size_t>(r)].check(named("all_to_all with lists"),
                                             [&](std::int64_t i) { return value(r, i, seed_); });
    }

    TypedMemory part = memory(doubles_of(root_, own_));
    scatter(own_ == root_ ? std::span<const Outgoing>(from) : std::span<const Outgoing>(),
            part.in(), root_);
    part.check(named("scatter with lists"), [&](std::int64_t i) { return value(root_, i, seed_); });

    std::vector<TypedMemory> rooms;
    std::vector<Incoming> gathered;
    for (int r = 0; r < size_; ++r) rooms.push_back(memory(doubles_of(r, root_)));
    for (TypedMemory& room : rooms) gathered.push_back(room.in());
    const TypedMemory mine = filled(doubles_of(own_, root_));
    gather(mine.out(),
           own_ == root_ ? std::span<const Incoming>(gathered) : std::span<const Incoming>(),
           root_);
    for (int r = 0; r < size_ && own_ == root_; ++r) {
      rooms[static_cast<std::size_t>(r)].check(named("gather with lists"),
                                               [&](std::int64_t i) { return value(r, i, seed_); });
    }
    std::vector<TypedMemory> more;
    std::vector<Incoming> everywhere;
    for (int r = 0; r < size_; ++r) more.push_back(memory(doubles_of(r, root_)));
    for (TypedMemory& room : more) everywhere.push_back(room.in());
    all_gather(mine.out(), std::span<const Incoming>(everywhere));
    for (int r = 0; r < size_; ++r) {
      more[static_cast<std::size_t>(r)].check(named("all_gather with lists"),
                                              [&](std::int64_t i) { return value(r, i, seed_); });
    }

    std::vector<std::int64_t> counts;
    std::int64_t begin = 0;
    std::int64_t own_begin = 0;
    for (int r = 0; r < size_; ++r) {
      if (r == own_) own_begin = begin;
      counts.push_back(doubles_of(r, 1));
      begin += counts.back();
    }
    std::vector<double> input;
    for (std::int64_t i = 0; i < begin; ++i) input.push_back(value(own_, i, seed_));
    TypedMemory block = memory(doubles_of(own_, 1));
    reduce_scatter(Outgoing{input.data(), begin, Scalar::float64}, block.in(),
                   std::span<const std::int64_t>(counts), ReduceOperation::sum());
    block.check(named("reduce_scatter with counts"),
                [&](std::int64_t i) { return bracket(0, size_, own_begin + i, seed_); });
  }

  /// Many at a time, waited for in another order on each rank.
  void in_flight() {
    constexpr int together = 20;
    std::vector<TypedMemory> from;
    std::vector<TypedMemory> to;
    std::vector<Collective> begun;
    for (int k = 0; k < together; ++k) {
      from.push_back(filled(n_));
      to.push_back(memory(n_));
    }
    for (std::size_t k = 0; k < together; ++k) {
      begun.push_back(group_.begin_all_reduce(from[k].out(), to[k].in(), ReduceOperation::sum()));
    }
    for (std::size_t k = 0; k < together; ++k) {
      const std::size_t next = (k * 7 + static_cast<std::size_t>(own_) * 3) % together;
      begun[next].wait();
      const CollectiveReport report = begun[next].report();
      if (report.algorithm.empty() || report.seconds <= 0) {
        throw Error(ErrorCode::internal, named("the report"));
      }
      to[next].check(named("all_reduce in flight"),
                     [&](std::int64_t i) { return bracket(0, size_, i, seed_); });
    }
  }

  /// Copies to and from a buffer of one rank's: of two fragments, in both directions.
  void shared_buffer() { by_buffers("gsb", 4 * (size_ - 1), "copies"); }

  /// Copies along a tree: each rank has those with its parent and its children.
  void tree_buffers() {
    int others = own_ == 0 ? 0 : 1;
    for (int distance = 1; own_ % (2 * distance) == 0 && own_ + distance < size_; distance *= 2) {
      ++others;
    }
    by_buffers("btb", 4 * others, "copies of this rank");
  }

  /// A reduction in two fragments with each type of copies. `copies` are reported, under the name
  /// of `what`.
  void by_buffers(const char* algorithm, int copies, const char* what) {
    CollectiveOptions wanted;
    wanted.algorithm = algorithm;
    wanted.fragment_bytes = 2400;
    for (std::size_t k = 0; k < copies_names.size(); ++k) {
      wanted.copies = static_cast<Copies>(k);
      TypedMemory all{double_type(0), 600, &node_.device(0)};
      all.fill([&](std::int64_t i) { return value(own_, i, seed_); });
      const Collective begun = group_.begin_all_reduce(all.in(), ReduceOperation::sum(), wanted);
      begun.wait();
      all.check(named(algorithm), [&](std::int64_t i) { return bracket(0, size_, i, seed_); });
      const bool is_staged = wanted.copies == Copies::staged;
      // Others depend on what ends first, or on the machine file.
      const bool is_known = is_staged || wanted.copies == Copies::mapped;
      const std::string expected = is_known ? fmt::format("{}, {} of {} {} staged", algorithm,
                                                          is_staged ? copies : 0, copies, what)
                                            : fmt::format("{}, ", algorithm);
      const std::string way = begun.report().algorithm;
      if (!way.starts_with(expected)) {
        throw Error(ErrorCode::internal, named(algorithm) + ": " + way + ", not " + expected);
      }
    }
  }

  Node& node_;
  Group group_;
  std::unique_ptr<Stream> stream_;  ///< null: without devices
  int size_;
  int own_;
  std::uint32_t seed_;
  std::mt19937 common_;
  std::mt19937 own_random_;
  std::int64_t n_ = 0;
  int root_ = 0;
};

/// The last node asks for other copies: all hear of it.
void differ_in_copies(Node& node, const Group& group) {
  TypedMemory all{double_type(0), 10000, &node.device(0)};
  CollectiveOptions options;
  options.algorithm = "gsb";
  options.copies = group.rank() + 1 == group.size() ? Copies::mapped : Copies::staged;
  try {
    group.all_reduce(all.in(), ReduceOperation::sum(), options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage) return;
    throw;
  }
  throw Error(ErrorCode::internal, "other copies on one rank are not found");
}

void run(Node& node, int cases) {
  const Group world = node.group();
  for (int seed = 1; seed <= cases; ++seed)
    Cases(node, world, static_cast<std::uint32_t>(seed)).run();
  if (world.size() > 1 && node.devices() > 0) {
    differ_in_copies(node, world.split(0, world.rank()));
  }
  // Halves, in reverse order; then all but the first.
  const Group half = world.split(world.rank() % 2, -world.rank());
  Cases(node, half, 1000).run();
  if (world.size() < 3) return;
  std::vector<int> others;
  for (int r = world.size() - 1; r > 0; --r) others.push_back(r);
  const Group rest = world.subset(others);
  if (rest.is_member() != (world.rank() != 0)) {
    throw Error(ErrorCode::internal, "the first node is a member of the others");
  }
  // Both at the same time, on nodes that are in both.
  std::vector<double> a(2000, 1);
  std::vector<double> b(2000, 1);
  const Collective first =
      world.begin_all_reduce({a.data(), 2000, Scalar::float64}, ReduceOperation::sum());
  if (rest.is_member()) {
    rest.all_reduce({b.data(), 2000, Scalar::float64}, ReduceOperation::sum());
    if (b.front() != rest.size() || b.back() != rest.size()) {
      throw Error(ErrorCode::internal, "a group beside another one");
    }
    if (rest.rank() != world.size() - 1 - world.rank()) {
      throw Error(ErrorCode::internal, "the order of a subset");
    }
  }
  first.wait();
  if (a.front() != world.size()) throw Error(ErrorCode::internal, "another group beside one");
  const Group nobody = world.split(world.rank() == 0 ? -1 : 3, 0);
  if (nobody.is_member() != (world.rank() != 0)) throw Error(ErrorCode::internal, "no color");
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    if (argc > 2 && std::string_view(argv[2]) == "cuda") {
      const heddle::CudaProbe probe = heddle::probe_cuda();
      if (probe.gpus.empty()) {
        fmt::print("no GPU to test on: {}\n", probe.why);
        MPI_Finalize();
        return 0;
      }
    }
    // The last word: what else there is of devices.
    const std::string devices =
        argc > 3 ? fmt::format(
                       "{{backend: {}, per_node: {}, memory: 256MiB{}}}, messages: "
                       "{{device_memory: 16MiB}}",
                       argv[2], argv[3], argc > 4 ? std::string(", ") + argv[4] : "")
                 : "{backend: none}";
    heddle::Node node(heddle::Config::from_text(
                          fmt::format("runtime: {{cpu_workers: 1, devices: {}}}", devices), "test"),
                      MPI_COMM_WORLD);
    heddle::run(node, argc > 1 ? std::atoi(argv[1]) : 10);
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
