/// The largest eigenvalue of a symmetric matrix whose blocks lie on a grid of nodes, by groups of
/// the grid's rows and columns.
///
///   mpiexec -n P power_iteration [N]
///
/// Each node has a block; x is dealt out by columns of the grid, A x by rows. Rows of nodes add up
/// their parts of A x, and columns get theirs of the next x by a broadcast from the diagonal. P is
/// a square number.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <heddle.hpp>
#include <mpi.h>
#include <node-runtime/collectives/group.hpp>
#include <vector>

namespace {

/// Eigenvalues 1 to n: a diagonal matrix, reflected by the vector of ones.
double element(std::int64_t i, std::int64_t j, std::int64_t n) {
  const auto order = static_cast<double>(n);
  const auto value = [](std::int64_t k) { return static_cast<double>(k + 1); };
  const double mean = (order + 1) / 2;
  const double diagonal = i == j ? value(i) : 0;
  return diagonal - 2 / order * (value(i) + value(j)) + 4 / order * mean;
}

bool run(std::int64_t n) {
  heddle::Node node(heddle::Config::from_text("runtime: {devices: {backend: none}}", "power"),
                    MPI_COMM_WORLD);
  const heddle::Group world = node.group();
  const int side = static_cast<int>(std::lround(std::sqrt(world.size())));
  if (side * side != world.size() || n % side != 0) {
    throw heddle::Error(heddle::ErrorCode::usage,
                        "power_iteration needs a square number of nodes whose root divides N");
  }
  const int my_row = world.rank() / side;
  const int my_column = world.rank() % side;
  const heddle::Group row = world.split(my_row, my_column);
  const heddle::Group column = world.split(my_column, my_row);

  const std::int64_t block = n / side;
  const auto size = static_cast<std::size_t>(block);
  std::vector<double> a(size * size);
  for (std::int64_t j = 0; j < block; ++j) {
    for (std::int64_t i = 0; i < block; ++i) {
      a[static_cast<std::size_t>(i + j * block)] =
          element(my_row * block + i, my_column * block + j, n);
    }
  }
  std::vector<double> x(size, 1.0);
  std::vector<double> y(size);
  if (my_column == 0) x[0] = 2;  // not an eigenvector
  double norm = 0;
  for (int step = 0; step < 4000; ++step) {
    for (std::size_t i = 0; i < size; ++i) {
      y[i] = 0;
      for (std::size_t j = 0; j < size; ++j) y[i] += a[i + j * size] * x[j];
    }
    // All nodes of a row have the same part of A x, to the bit.
    row.all_reduce({y.data(), block, heddle::Scalar::float64}, heddle::ReduceOperation::sum());
    double squares = 0;
    for (const double element_of_y : y) squares += element_of_y * element_of_y;
    column.all_reduce({&squares, 1, heddle::Scalar::float64}, heddle::ReduceOperation::sum());
    norm = std::sqrt(squares);
    if (my_row == my_column) {
      for (std::size_t i = 0; i < size; ++i) x[i] = y[i] / norm;
    }
    column.broadcast({x.data(), block, heddle::Scalar::float64}, my_column);
  }
  const auto expected = static_cast<double>(n);
  const bool is_right = std::abs(norm - expected) < 1e-6 * expected;
  if (world.rank() == 0) {
    std::printf("largest eigenvalue %.9g of order %lld on %d nodes, %s\n", norm,
                static_cast<long long>(n), world.size(), is_right ? "all is well" : "all is wrong");
  }
  node.stop();
  return is_right;
}

}  // namespace

int main(int count, char** words) {
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    status = run(count > 1 ? std::strtoll(words[1], nullptr, 10) : 48) ? 0 : 1;
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "power_iteration: %s\n", error.what()));
    status = 1;
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
