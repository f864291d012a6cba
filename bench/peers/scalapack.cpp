// How fast is ScaLAPACK's pdpotrf on a grid of processes?
#include <array>
#include <cblas.h>
#include <mpi.h>
#include <string>

#include "bench/peers/peer.hpp"

// ScaLAPACK and its BLACS come without headers.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* me, const int* first, const int* processes);
void descinit_(int* descriptor, const int* m, const int* n, const int* row_block,
               const int* column_block, const int* first_row, const int* first_column,
               const int* context, const int* leading, int* info);
void pdpotrf_(const char* uplo, const int* n, double* a, const int* row, const int* column,
              const int* descriptor, int* info);
}
// NOLINTEND(readability-identifier-naming)

namespace peer = heddle::peer;

namespace {

/// One process's part of the block-cyclic SPD test matrix on a grid of processes.
struct LocalMatrix {
  int n, block, grid_rows, grid_columns;
  int context = 0, my_row = 0, my_column = 0, rows = 0, columns = 0, leading = 1;
  std::array<int, 9> descriptor{};
  peer::Buffer elements;

  LocalMatrix(int order, int block_size, int p, int q)
      : n(order), block(block_size), grid_rows(p), grid_columns(q) {
    const int zero = 0;
    int info = 0;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", p, q);
    Cblacs_gridinfo(context, &grid_rows, &grid_columns, &my_row, &my_column);
    rows = numroc_(&n, &block, &my_row, &zero, &grid_rows);
    columns = numroc_(&n, &block, &my_column, &zero, &grid_columns);
    leading = std::max(1, rows);
    descinit_(descriptor.data(), &n, &n, &block, &block, &zero, &zero, &context, &leading, &info);
    elements = peer::Buffer(std::int64_t{leading} * columns);
  }
  ~LocalMatrix() { Cblacs_gridexit(context); }
  LocalMatrix(const LocalMatrix&) = delete;
  LocalMatrix& operator=(const LocalMatrix&) = delete;

  [[nodiscard]] std::int64_t global_row(std::int64_t i) const {
    return (i / block * grid_rows + my_row) * block + i % block;
  }
  [[nodiscard]] std::int64_t global_column(std::int64_t j) const {
    return (j / block * grid_columns + my_column) * block + j % block;
  }
  [[nodiscard]] double& at(std::int64_t i, std::int64_t j) const {
    return elements.data()[i + j * leading];
  }

  void generate() {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        at(i, j) = peer::spd_element(global_row(i), global_column(j), n);
      }
    }
  }

  int factorize() {
    const int one = 1;
    int info = 0;
    pdpotrf_("L", &n, elements.data(), &one, &one, descriptor.data(), &info);
    return info;
  }

  /// The whole factor, column-major, on rank 0; empty elsewhere. For checks of small problems.
  [[nodiscard]] std::vector<double> gather(int rank) const {
    std::vector<double> mine(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        mine[static_cast<std::size_t>(global_row(i) + global_column(j) * n)] = at(i, j);
      }
    }
    std::vector<double> whole(rank == 0 ? mine.size() : 0);
    for (int j = 0; j < n; ++j) {  // a column at a time keeps the counts small
      const std::size_t begin = static_cast<std::size_t>(j) * static_cast<std::size_t>(n);
      MPI_Reduce(&mine[begin], rank == 0 ? &whole[begin] : nullptr, n, MPI_DOUBLE, MPI_SUM, 0,
                 MPI_COMM_WORLD);
    }
    return whole;
  }
};

int run(const peer::CholeskyOptions& options, int grid_rows, int grid_columns, int rank) {
  LocalMatrix a(static_cast<int>(options.n), static_cast<int>(options.block), grid_rows,
                grid_columns);
  int info = 0;
  const auto seconds = peer::measure(
      options.warm_up, options.repetitions,
      [&] {
        a.generate();
        MPI_Barrier(MPI_COMM_WORLD);
      },
      [&] {
        info = a.factorize();
        MPI_Barrier(MPI_COMM_WORLD);
      });
  if (info != 0) {
    std::fprintf(stderr, "peer_scalapack: pdpotrf says info = %d on rank %d\n", info, rank);
    return 1;
  }
  if (rank == 0) {
    peer::print_cholesky("scalapack",
                         "grid=" + std::to_string(grid_rows) + "x" + std::to_string(grid_columns),
                         options, seconds);
  }
  if (!options.check) return 0;
  const std::vector<double> whole = a.gather(rank);
  if (rank != 0) return 0;
  const auto element = [&](std::int64_t i, std::int64_t j) {
    return whole[static_cast<std::size_t>(i + j * options.n)];
  };
  return peer::judge_factor(options.n, peer::factor_error(options.n, element)) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  peer::CholeskyOptions options;
  options.threads = 1;
  std::string grid = "1x2";
  CLI::App app{"pdpotrf; start it with mpiexec and as many processes as the grid has places"};
  peer::add_cholesky_options(app, options);
  app.add_option("--grid", grid, "rows x columns of processes, such as 1x2");
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(options.threads);

  int grid_rows = 0;
  int grid_columns = 0;
  int rank = 0;
  int processes = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (std::sscanf(grid.c_str(), "%dx%d", &grid_rows, &grid_columns) != 2 || grid_rows < 1 ||
      grid_columns < 1 || grid_rows * grid_columns != processes) {
    if (rank == 0) {
      std::fprintf(stderr, "peer_scalapack: grid %s does not make %d processes\n", grid.c_str(),
                   processes);
    }
    MPI_Finalize();
    return 2;
  }
  const int status = run(options, grid_rows, grid_columns, rank);
  MPI_Finalize();
  return status;
}
