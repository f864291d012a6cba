/// Reductions by operations of a program's own and by those with an index, on all nodes: the order
/// counts, elements are several scalars, and fragments and blocks would cut them if they could.
///
///   mpiexec -n P own_operations_program
///
/// Prints "all is well" on node 0.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fmt/core.h>
#include <functional>
#include <mpi.h>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/reduce/own_operations.hpp"
#include "node-runtime/node.hpp"
#include "tests/collectives/reduce/own_functors.hpp"

namespace heddle::test {
namespace {

std::uint64_t number(int rank, std::int64_t i) {
  std::uint64_t h = (static_cast<std::uint64_t>(rank) << 40U) ^ static_cast<std::uint64_t>(i);
  h = (h ^ (h >> 33U)) * 0xff51afd7ed558ccdULL;
  return (h ^ (h >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
}

/// A value and an index, both doubles.
struct Place {
  double value, index;
};

// Element i of a rank's input.
Matrix2 input(int rank, std::int64_t i, const Matrix2* /*type*/) {
  const auto real = [&](int k) {
    return static_cast<double>(number(rank, 4 * i + k) >> 11U) * 0x1p-52 - 1;
  };
  return {real(0), real(1), real(2), real(3)};
}
AffineMap input(int rank, std::int64_t i, const AffineMap* /*type*/) {
  return {static_cast<std::uint32_t>(number(rank, 2 * i) % 1000003),
          static_cast<std::uint32_t>(number(rank, 2 * i + 1) % 1000003)};
}
ThreeBytes input(int rank, std::int64_t i, const ThreeBytes* /*type*/) {
  const auto digit = [&](int k) {
    return static_cast<std::uint8_t>(number(rank, 3 * i + k) >> 60U) % 5;
  };
  return {static_cast<std::uint8_t>(digit(0)), static_cast<std::uint8_t>(digit(1)),
          static_cast<std::uint8_t>(digit(2))};
}
Place input(int rank, std::int64_t i, const Place* /*type*/) {
  return {static_cast<double>(number(rank, i) >> 62U), static_cast<double>(100 * i + rank)};
}

/// Every reducing operation of a group with one reduce operation on elements T.
template <class T>
class Case {
 public:
  using Two = std::function<T(const T&, const T&)>;
  Case(const Group& group, ReduceOperation operation, Scalar scalar, Two two)
      : group_(group),
        operation_(std::move(operation)),
        scalar_(scalar),
        two_(std::move(two)),
        size_(group.size()),
        own_(group.rank()) {}

  void run() {
    for (const std::int64_t n : {0, 1, 3, 50, 3001}) {
      n_ = n;
      for (const std::int64_t fragment : {0, 5, 24, 1000}) {
        // Hundreds of fragments show all that thousands do.
        if (fragment > 0 && n * static_cast<std::int64_t>(sizeof(T)) > 300 * fragment) continue;
        options_.fragment_bytes = fragment;
        reduce();
        scans();
        for (const char* const way :
             {"auto", "reduce_broadcast", "scatter_gather", "chain", "split_binary"}) {
          options_.algorithm = way;
          all_reduce();
        }
        options_.algorithm = "auto";
      }
      reduce_scatter();
    }
  }

 private:
  [[nodiscard]] std::vector<T> own_input(std::int64_t count) const {
    std::vector<T> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back(value(own_, i));
    return made;
  }
  [[nodiscard]] static T value(int rank, std::int64_t i) {
    return input(rank, i, static_cast<const T*>(nullptr));
  }
  [[nodiscard]] T bracket(int begin, int end, std::int64_t i) const {
    if (end - begin == 1) return value(begin, i);
    int left = 1;
    while (2 * left < end - begin) left *= 2;
    return two_(bracket(begin, begin + left, i), bracket(begin + left, end, i));
  }
  /// Ranks describe them differently: as scalars, and as elements.
  [[nodiscard]] Incoming in(std::vector<T>& memory, std::int64_t count) const {
    const std::int64_t each = operation_.scalars_per_element();
    if (own_ % 2 == 0) return {memory.data(), count * each, scalar_};
    return {memory.data(), count, Datatype::contiguous(each, scalar_)};
  }
  [[nodiscard]] Outgoing out(std::vector<T>& memory, std::int64_t count) const {
    const Incoming same = in(memory, count);
    return {same.memory, same.count, same.type};
  }
  void expect(const char* what, const std::vector<T>& is, std::int64_t first, int end) const {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(is.size()); ++i) {
      const T wanted = bracket(0, end, first + i);
      if (std::memcmp(&is[static_cast<std::size_t>(i)], &wanted, sizeof(T)) == 0) continue;
      throw Error(
          ErrorCode::internal,
          fmt::format("{} of {} elements with {}, {} in fragments of {}: element {} is wrong", what,
                      n_, operation_.name(), options_.algorithm, options_.fragment_bytes, i));
    }
  }

  void reduce() {
    std::vector<T> from = own_input(n_);
    std::vector<T> to(from.size());
    const int root = size_ - 1;
    group_.reduce(out(from, n_), in(to, n_), operation_, root, options_);
    if (own_ == root) expect("reduce", to, 0, size_);
  }
  void all_reduce() {
    std::vector<T> from = own_input(n_);
    std::vector<T> to(from.size());
    group_.all_reduce(out(from, n_), in(to, n_), operation_, options_);
    expect("all_reduce", to, 0, size_);
    group_.all_reduce(in(from, n_), operation_, options_);
    expect("all_reduce in place", from, 0, size_);
  }
  void scans() {
    std::vector<T> from = own_input(n_);
    std::vector<T> to(from.size());
    group_.exclusive_scan(out(from, n_), in(to, n_), operation_, options_);
    if (own_ > 0) expect("exclusive_scan", to, 0, own_);
    group_.scan(out(from, n_), in(to, n_), operation_, options_);
    expect("scan", to, 0, own_ + 1);
    group_.scan(in(from, n_), operation_, options_);
    expect("scan in place", from, 0, own_ + 1);
  }
  void reduce_scatter() {
    std::vector<T> from = own_input(n_ * size_);
    std::vector<T> to(static_cast<std::size_t>(n_));
    group_.reduce_scatter(out(from, n_), in(to, n_), operation_);
    expect("reduce_scatter", to, own_ * n_, size_);

    std::vector<std::int64_t> counts;
    std::int64_t all = 0;
    std::int64_t begin = 0;
    for (int r = 0; r < size_; ++r) {
      if (r == own_) begin = all;
      counts.push_back((n_ + 7 * r) % 60);
      all += counts.back();
    }
    const std::int64_t own_count = counts[static_cast<std::size_t>(own_)];
    from = own_input(all);
    to.resize(static_cast<std::size_t>(own_count));
    // Counts are the input's elements: all ranks describe it in one way here.
    const Datatype element = Datatype::contiguous(operation_.scalars_per_element(), scalar_);
    group_.reduce_scatter({from.data(), all, element}, in(to, own_count), counts, operation_);
    expect("reduce_scatter with counts", to, begin, size_);
  }

  const Group& group_;
  ReduceOperation operation_;
  Scalar scalar_;
  Two two_;
  int size_;
  int own_;
  std::int64_t n_ = 0;
  CollectiveOptions options_;
};

/// "usage: text" of what a call throws.
std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::usage ? error.what() : "another error";
  }
  return "nothing";
}

void expect_refusal(const std::string& said, const char* part) {
  if (said.find(part) != std::string::npos) return;
  throw Error(ErrorCode::internal, fmt::format("'{}' was said, not '{}'", said, part));
}

/// A third of an element in a rank's block, and operations that differ.
void refusals(const Group& group) {
  std::vector<double> x(100);
  const auto least = ReduceOperation::minimum_with_index();
  expect_refusal(refusal_of([&] {
                   group.all_reduce({x.data(), 5, Scalar::float64}, least);
                 }),
                 "the output has 5 times 1 scalars for a rank, which are no whole number of "
                 "elements of 2 scalars");
  std::vector<double> y(100);
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(group.size()), 3);
  expect_refusal(refusal_of([&] {
                   group.reduce_scatter({x.data(), 3 * group.size(), Scalar::float64},
                                        {y.data(), 3, Scalar::float64}, counts, least);
                 }),
                 "has 3 times 1 scalars for a rank");
  if (group.size() == 1) return;
  const ReduceOperation other = make_host_reduce_operation<double>(
      [](double a, double) { return a; },
      {.name = group.rank() == 0 ? "the first" : "the left one"});
  const Group apart = group.split(0, group.rank());
  expect_refusal(refusal_of([&] {
                   apart.all_reduce({x.data(), 5, Scalar::float64}, other);
                 }),
                 "with the first");
}

void run(Node& node) {
  const Group world = node.group();
  Case<Matrix2>(world, matrix_product(), Scalar::float64, MatrixProduct{}).run();
  Case<AffineMap>(world, then_modulo(1000003), Scalar::uint32, ThenModulo{1000003}).run();
  Case<ThreeBytes>(world, first_that_is(), Scalar::byte, FirstThatIs{}).run();
  const auto less = [](const Place& a, const Place& b) {
    return std::pair(a.value, a.index) < std::pair(b.value, b.index) ? a : b;
  };
  Case<Place>(world, ReduceOperation::minimum_with_index(), Scalar::float64, less).run();
  // Not even associative: another bracket than that of the ranks shows in every element.
  const std::vector<double> weights{1, -1, 0.5};
  const auto weighed = [weights](const Matrix2& a, const Matrix2& b) {
    return Matrix2{a.a * weights[0] + b.a, a.b * weights[1] + b.b, a.c * weights[2] + b.c, a.d};
  };
  Case<Matrix2>(
      world,
      make_host_reduce_operation<Matrix2>(weighed, {.name = "weighed", .scalar = Scalar::float64}),
      Scalar::float64, weighed)
      .run();
  refusals(world);
}

}  // namespace
}  // namespace heddle::test

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    heddle::Node node(
        heddle::Config::from_text("runtime: {cpu_workers: 1, devices: {backend: none}}", "test"),
        MPI_COMM_WORLD);
    heddle::test::run(node);
    node.stop();
    if (node.rank() == 0) fmt::print("all is well\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    status = 1;
  }
  std::fflush(nullptr);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
