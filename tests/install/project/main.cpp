/// apps/examples/driver.cpp in short: factorizes, solves and checks a matrix of its own, and runs a
/// kernel of its own, through the installed package.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <heddle.hpp>
#include <mpi.h>
#include <node-runtime/topology/files/topology_file.hpp>
#include <node-runtime/topology/mapping/mapping.hpp>
#include <node-runtime/topology/mapping/traffic_pattern.hpp>
#include <vector>

namespace {

double element(std::int64_t i, std::int64_t j) {
  return std::exp(-std::abs(static_cast<double>(i - j)) / 10) + (i == j ? 0.01 : 0.0);
}

double ones(std::int64_t, std::int64_t) {
  return 1;
}

heddle::Matrix<double> covariance(heddle::Node& node, std::int64_t n) {
  heddle::MatrixSpec spec(n, n, heddle::Storage::lower);
  heddle::Matrix<double> a = node.matrix<double>(spec);
  a.fill(element);
  return a;
}

bool ended_well(heddle::Job job) {
  return job.wait().status == heddle::JobResult::Status::done;
}

bool solves(heddle::Node& node) {
  constexpr std::int64_t n = 500;
  const heddle::Matrix<double> l = covariance(node, n);
  heddle::Matrix<double> x = heddle::right_hand_sides(l, 1);
  x.fill(ones);
  if (!ended_well(node.submit(heddle::cholesky(l)))) return false;
  if (!ended_well(node.submit(heddle::solve_cholesky(l, x)))) return false;

  const heddle::Matrix<double> a = covariance(node, n);
  heddle::Matrix<double> r = heddle::right_hand_sides(a, 1);
  r.fill(ones);
  const std::vector<heddle::Norm> b_norms = heddle::column_norms(r);
  if (!ended_well(node.submit(heddle::subtract_symmetric_product(r, a, x)))) return false;
  const double residual = heddle::scaled_solution_residual(
      heddle::column_norms(r), heddle::column_norms(x), b_norms, heddle::symmetric_one_norm(a), n);
  if (node.rank() == 0) std::printf("residual %.2g\n", residual);
  return residual < 10;
}

std::int64_t add_twice(const heddle::KernelArguments& arguments) {
  const heddle::TileView sum = arguments.tiles[0];
  const heddle::TileView other = arguments.tiles[1];
  for (std::int64_t i = 0; i < sum.rows; ++i) sum(i, 0) += 2 * other(i, 0);
  return 0;
}
constexpr heddle::Kernel add_twice_kernel{.name = "add twice", .host = add_twice};

/// Each tile of a column adds twice the one above it: 1, 3, 7, 15, ...
bool runs_its_own_kernel(heddle::Node& node) {
  heddle::MatrixSpec spec(60, 1);
  spec.layout.tile = 10;
  spec.distribution = {node.size(), 1, 0};
  heddle::Matrix<double> column = node.matrix<double>(spec);
  column.fill(ones);
  heddle::UserStream stream = node.stream("doubling", {column});
  const auto tile = [&](std::int32_t i) {
    return column(heddle::TileRow{i}, heddle::TileColumn{0});
  };
  for (std::int32_t i = 1; i < column.layout().tile_rows(); ++i) {
    stream.insert(add_twice_kernel, {read_write(tile(i)), read(tile(i - 1))});
  }
  if (!ended_well(stream.end())) return false;
  const heddle::Norm sum = heddle::column_norms(column)[0];
  if (node.rank() == 0) std::printf("sum %Lg\n", sum);
  return sum == 10 * (1 + 3 + 7 + 15 + 31 + 63);
}

/// In order a ring of eight costs more than twice the optimum on a DGX-1V.
bool maps_a_ring() {
  const heddle::Mapping mapping =
      heddle::map_traffic(heddle::traffic_of_pattern("ring 8"), heddle::read_topology("dgx-1v"));
  return mapping.is_optimal && 2 * mapping.cost < mapping.cost_in_order;
}

int run() {
  heddle::Node node(heddle::Config::from_text("runtime: {cpu_workers: 1}\n", "outside"),
                    MPI_COMM_WORLD);
  const bool good = solves(node) && runs_its_own_kernel(node) && maps_a_ring();
  node.stop();
  return good ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 1;
  try {
    status = run();
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "outside: %s\n", error.what()));
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
