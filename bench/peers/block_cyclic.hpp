#pragma once

#include <array>
#include <cblas.h>
#include <mpi.h>
#include <string>
#include <vector>

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
}
// NOLINTEND(readability-identifier-naming)

/// What the ScaLAPACK peers share: the grid of processes and a matrix on it.
namespace heddle::peer {

struct Grid {
  int rows = 0;
  int columns = 0;
  int rank = 0;  ///< of this process

  [[nodiscard]] std::string name() const {
    return std::to_string(rows) + "x" + std::to_string(columns);
  }
};

/// Calls `run` with the grid between MPI_Init and MPI_Finalize; its exit status, or 2 if there are
/// not as many processes as `grid`, such as "1x2", has places.
template <class Run>
int run_on_grid(const std::string& grid, Run run) {
  MPI_Init(nullptr, nullptr);
  Grid here;
  int processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &here.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  int status = 2;
  if (std::sscanf(grid.c_str(), "%dx%d", &here.rows, &here.columns) == 2 && here.rows >= 1 &&
      here.columns >= 1 && here.rows * here.columns == processes) {
    status = run(here);
  } else if (here.rank == 0) {
    std::fprintf(stderr, "grid %s does not make %d processes\n", grid.c_str(), processes);
  }
  MPI_Finalize();
  return status;
}

/// One process's part of a block-cyclic matrix on a grid of processes.
struct BlockCyclicMatrix {
  int m, n, block, grid_rows, grid_columns;
  int context = 0, my_row = 0, my_column = 0, rows = 0, columns = 0, leading = 1;
  std::array<int, 9> descriptor{};
  Buffer elements;

  BlockCyclicMatrix(std::int64_t row_count, std::int64_t column_count, std::int64_t block_size,
                    const Grid& grid)
      : m(static_cast<int>(row_count)),
        n(static_cast<int>(column_count)),
        block(static_cast<int>(block_size)),
        grid_rows(grid.rows),
        grid_columns(grid.columns) {
    const int zero = 0;
    int info = 0;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", grid.rows, grid.columns);
    Cblacs_gridinfo(context, &grid_rows, &grid_columns, &my_row, &my_column);
    rows = numroc_(&m, &block, &my_row, &zero, &grid_rows);
    columns = numroc_(&n, &block, &my_column, &zero, &grid_columns);
    leading = std::max(1, rows);
    descinit_(descriptor.data(), &m, &n, &block, &block, &zero, &zero, &context, &leading, &info);
    elements = Buffer(std::int64_t{leading} * columns);
  }
  ~BlockCyclicMatrix() { Cblacs_gridexit(context); }
  BlockCyclicMatrix(const BlockCyclicMatrix&) = delete;
  BlockCyclicMatrix& operator=(const BlockCyclicMatrix&) = delete;

  [[nodiscard]] std::int64_t global_row(std::int64_t i) const {
    return (i / block * grid_rows + my_row) * block + i % block;
  }
  [[nodiscard]] std::int64_t global_column(std::int64_t j) const {
    return (j / block * grid_columns + my_column) * block + j % block;
  }
  [[nodiscard]] double& at(std::int64_t i, std::int64_t j) const {
    return elements.data()[i + j * leading];
  }

  /// Sets each element to value(i, j), of its row and column in the whole matrix.
  template <class Value>
  void generate(Value value) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) at(i, j) = value(global_row(i), global_column(j));
    }
  }

  /// The first n rows, where the factor stands, column-major, on rank 0; empty elsewhere. For
  /// checks of small problems.
  [[nodiscard]] std::vector<double> gather_square(int rank) const {
    std::vector<double> mine(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows && global_row(i) < n; ++i) {
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

}  // namespace heddle::peer
