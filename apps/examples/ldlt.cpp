/// A tile algorithm of one's own on several nodes: A = L D L^T without pivoting.
///
///   mpiexec.mpich -n 4 heddle_ldlt [N [TILE [ROWS COLUMNS]]]
///
/// N is the order of A, TILE that of its tiles, ROWS x COLUMNS the grid of nodes. The program is
/// the textbook's right-looking algorithm on tiles. It names, for each tile that is finished, the
/// tasks that read it; the walk over the tiles sends it there. The result is compared with A, and
/// with plain loops over the same kernels, to the last bit.
///
/// D is diagonal. Without pivoting L and D exist for every symmetric quasi-definite matrix
/// [H B^T; B -G], H and G positive definite (Vanderbei, SIAM J. Optim. 5, 1995), as they come up
/// in interior-point methods.

#include <algorithm>
#include <algorithms/walk/tile_walk.hpp>
#include <base/standard_streams.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <heddle.hpp>
#include <limits>
#include <mpi.h>
#include <string>
#include <vector>

namespace {

using heddle::TileColumn;
using heddle::TileRange;
using heddle::TileRow;
using heddle::TileView;

// ---- kernels ------------------------------------------------------------------------------------

/// tile0 := L and D of the lower triangle, D on the diagonal, where L has ones.
/// Returns the first column (from 1) whose pivot is 0 or not a number.
std::int64_t factor(const heddle::KernelArguments& arguments) {
  const TileView a = arguments.tiles[0];
  for (std::int64_t k = 0; k < a.columns; ++k) {
    const double pivot = a(k, k);
    if (pivot == 0 || !std::isfinite(pivot)) return k + 1;
    for (std::int64_t j = k + 1; j < a.columns; ++j) {
      const double factor = a(j, k) / pivot;
      for (std::int64_t i = j; i < a.rows; ++i) a(i, j) -= a(i, k) * factor;
    }
    for (std::int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= pivot;
  }
  return 0;
}

/// tile0 := tile0 inv(D L^T), L and D of tile1.
std::int64_t divide(const heddle::KernelArguments& arguments) {
  const TileView x = arguments.tiles[0];
  const TileView l = arguments.tiles[1];
  for (std::int64_t k = 0; k < x.columns; ++k) {
    for (std::int64_t j = k + 1; j < x.columns; ++j) {
      for (std::int64_t i = 0; i < x.rows; ++i) x(i, j) -= x(i, k) * l(j, k);
    }
    for (std::int64_t i = 0; i < x.rows; ++i) x(i, k) /= l(k, k);
  }
  return 0;
}

void subtract_product(const TileView& a, const TileView& left, const TileView& right,
                      const TileView& diagonal, bool lower) {
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t k = 0; k < left.columns; ++k) {
      const double factor = diagonal(k, k) * right(j, k);
      for (std::int64_t i = lower ? j : 0; i < a.rows; ++i) a(i, j) -= left(i, k) * factor;
    }
  }
}

/// tile0 -= tile1 D tile2^T, D of tile3.
std::int64_t update(const heddle::KernelArguments& arguments) {
  const auto& t = arguments.tiles;
  subtract_product(t[0], t[1], t[2], t[3], false);
  return 0;
}

/// Lower triangle of tile0 -= tile1 D tile1^T, D of tile2.
std::int64_t update_diagonal(const heddle::KernelArguments& arguments) {
  const auto& t = arguments.tiles;
  subtract_product(t[0], t[1], t[1], t[2], true);
  return 0;
}

constexpr heddle::Kernel factor_kernel{.name = "ldlt factor", .host = factor};
constexpr heddle::Kernel divide_kernel{.name = "ldlt divide", .host = divide};
constexpr heddle::Kernel update_kernel{.name = "ldlt update", .host = update};
constexpr heddle::Kernel update_diagonal_kernel{.name = "ldlt update of diagonal",
                                                .host = update_diagonal};

// ---- the algorithm ------------------------------------------------------------------------------

heddle::Program factorize(heddle::TaskStream& tasks, heddle::Matrix<double> a) {
  const heddle::TileLayout layout = a.layout();
  heddle::TileWalk walk(tasks, a);

  for (TileColumn c{0}; c < layout.end_column(); ++c) {
    const TileRow k = layout.diagonal_row(c);
    const TileRange panel = walk.column(c, k + 1);
    const TileRange trailing = walk.trailing(k + 1, c + 1);
    heddle::TaskOptions options;
    options.priority = heddle::column_priority(layout.tile_columns(), c, 1);

    for (const auto task : walk.over(walk.tile(k, c))) {
      options.info_base = layout.column_begin(c);
      co_await task.insert(factor_kernel, {read_write(a(k, c))}, options);
      options.info_base = 0;
    }
    walk.broadcast(a(k, c), {panel, trailing});
    for (const auto task : walk.over(panel)) {
      const TileRow i = task.row;
      co_await task.insert(divide_kernel, {read_write(a(i, c)), read(a(k, c))}, options);
    }
    walk.broadcast_column(a, c, k + 1, trailing);  // L(i, c) to row i and column i
    for (const auto task : walk.over(trailing)) {
      const TileRow i = task.row;
      const TileRow j = layout.diagonal_row(task.column);
      options.priority = heddle::column_priority(layout.tile_columns(), task.column, 0);
      if (i == j) {
        co_await task.insert(update_diagonal_kernel,
                             {read_write(a(i, task.column)), read(a(i, c)), read(a(k, c))},
                             options);
      } else {
        co_await task.insert(
            update_kernel,
            {read_write(a(i, task.column)), read(a(i, c)), read(a(j, c)), read(a(k, c))}, options);
      }
    }
  }
}

heddle::JobSpec ldlt(const heddle::Matrix<double>& a) {
  return heddle::job_of("ldlt", {a},
                        [a](heddle::TaskStream& tasks) { return factorize(tasks, a); });
}

// ---- the same in plain loops
// ---------------------------------------------------------------------

/// A square matrix in one piece of memory.
struct Dense {
  std::int64_t n;
  std::vector<double> elements;

  explicit Dense(std::int64_t order)
      : n(order), elements(static_cast<std::size_t>(order * order), 0.0) {}
  double& operator()(std::int64_t i, std::int64_t j) {
    return elements[static_cast<std::size_t>(i + j * n)];
  }
  TileView block(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) {
    return {elements.data() + i + j * n, rows, columns, n};
  }
};

void run(const heddle::Kernel& kernel, const std::vector<TileView>& tiles) {
  kernel.host({tiles, heddle::KernelParameters()});
}

void factorize(Dense& a, std::int64_t tile) {
  const auto size = [&](std::int64_t begin) { return std::min(tile, a.n - begin); };
  const auto at = [&](std::int64_t i, std::int64_t j) { return a.block(i, j, size(i), size(j)); };
  for (std::int64_t k = 0; k < a.n; k += tile) {
    run(factor_kernel, {at(k, k)});
    for (std::int64_t i = k + tile; i < a.n; i += tile) run(divide_kernel, {at(i, k), at(k, k)});
    for (std::int64_t j = k + tile; j < a.n; j += tile) {
      run(update_diagonal_kernel, {at(j, j), at(j, k), at(k, k)});
      for (std::int64_t i = j + tile; i < a.n; i += tile) {
        run(update_kernel, {at(i, j), at(i, k), at(j, k), at(k, k)});
      }
    }
  }
}

// ---- a run and its checks
// ------------------------------------------------------------------------

/// Element (i, j) of a quasi-definite matrix of order n, i >= j.
double element(std::int64_t i, std::int64_t j, std::int64_t n) {
  const double coupling = std::sin(static_cast<double>(3 * i + 7 * j));
  if (i != j) return coupling / static_cast<double>(n);
  return 2 * i < n ? 1.5 : -1.25;
}

/// The lower triangle of the whole matrix, on every node.
Dense gather(heddle::Node& node, heddle::Matrix<double> a) {
  Dense all(a.rows());
  const heddle::TileLayout layout = a.layout();
  a.for_each_tile([&](TileRow i, TileColumn c, TileView tile) {  // tiles do not overlap
    const std::int64_t row = layout.row_begin(i);
    const std::int64_t column = layout.column_begin(c);
    for (std::int64_t q = 0; q < tile.columns; ++q) {
      for (std::int64_t p = 0; p < tile.rows; ++p) {
        if (row + p >= column + q) all(row + p, column + q) = tile(p, q);
      }
    }
  });
  node.all_reduce(all.elements, heddle::Reduction::sum);
  return all;
}

/// max |A - L D L^T| / (n eps); the elements of A are at most 1.5.
double residual(Dense& l) {
  double worst = 0;
  for (std::int64_t j = 0; j < l.n; ++j) {
    for (std::int64_t i = j; i < l.n; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k <= j; ++k) {
        sum += (i == k ? 1 : l(i, k)) * l(k, k) * (j == k ? 1 : l(j, k));
      }
      worst = std::max(worst, std::abs(element(i, j, l.n) - sum));
    }
  }
  return worst / (static_cast<double>(l.n) * std::numeric_limits<double>::epsilon());
}

struct Problem {
  std::int64_t n = 300;
  std::int64_t tile = 32;
  std::int32_t grid_rows = 0;
  std::int32_t grid_columns = 0;
};

int run(const Problem& problem) {
  heddle::Node node(heddle::Config::from_text("logging: {level: warning}\n", "ldlt"),
                    MPI_COMM_WORLD);
  heddle::MatrixSpec spec(problem.n, problem.n, heddle::Storage::lower);
  spec.layout.tile = problem.tile;
  spec.distribution = {node.size(), 1, 0};  // grid rows, grid columns, devices
  if (problem.grid_rows > 0) spec.distribution = {problem.grid_rows, problem.grid_columns, 0};
  if (spec.distribution.node_count() != node.size()) {
    throw heddle::Error(heddle::ErrorCode::usage, "the grid needs another number of nodes");
  }
  heddle::Matrix<double> a = node.matrix<double>(spec);
  const std::int64_t n = problem.n;
  a.fill([n](std::int64_t i, std::int64_t j) { return element(i, j, n); });

  if (node.submit(ldlt(a)).wait().status != heddle::JobResult::Status::done) {
    throw heddle::Error(heddle::ErrorCode::numerical, "a pivot is 0");
  }

  Dense l = gather(node, a);
  Dense expected(n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) expected(i, j) = element(i, j, n);
  }
  factorize(expected, problem.tile);
  const bool same_bits = std::memcmp(l.elements.data(), expected.elements.data(),
                                     l.elements.size() * sizeof(double)) == 0;
  const double scaled = residual(l);
  const bool good = same_bits && scaled < 10;
  if (node.rank() == 0) {
    std::printf("L D L^T of order %lld in tiles of %lld on %d x %d nodes: residual %.2g, %s\n",
                static_cast<long long>(n), static_cast<long long>(problem.tile),
                spec.distribution.grid_rows, spec.distribution.grid_columns, scaled,
                same_bits ? "the bits of plain loops" : "OTHER BITS THAN PLAIN LOOPS");
    std::printf("%s\n", good ? "all is well" : "THE RESULT IS WRONG");
  }
  node.stop();
  return good ? 0 : 1;
}

Problem problem_from(int count, char** words) {
  Problem problem;
  const auto number = [&](int at, long long least) {
    char* end = nullptr;
    const long long value = std::strtoll(words[at], &end, 10);
    if (*end != '\0' || value < least || value > 20'000) {
      throw heddle::Error(heddle::ErrorCode::usage,
                          "usage: heddle_ldlt [N [TILE [ROWS COLUMNS]]], each up to 20000");
    }
    return value;
  };
  if (count > 1) problem.n = number(1, 1);
  if (count > 2) problem.tile = number(2, 1);
  if (count > 4) {
    problem.grid_rows = static_cast<std::int32_t>(number(3, 1));
    problem.grid_columns = static_cast<std::int32_t>(number(4, 1));
  }
  return problem;
}

}  // namespace

int main(int count, char** words) {
  heddle::open_standard_streams();
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 1;
  try {
    status = run(problem_from(count, words));
  } catch (const heddle::Error& error) {
    static_cast<void>(std::fprintf(stderr, "heddle_ldlt: %s\n", error.what()));
    status = heddle::exit_status(error.code());
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "heddle_ldlt: %s\n", error.what()));
  }
  // After a failure other nodes may be gone, and MPI_Finalize would wait for them.
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
