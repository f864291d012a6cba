/// For programs that have their matrices as ScaLAPACK wants them: solves with the caller's own
/// block-cyclic arrays in place, as pdposv and pdgels would (docs/from-scalapack.md).
///
///   from_scalapack [N [NB [NRHS [DEVICES]]]]       one process
///   mpiexec.mpich -n 4 from_scalapack 1000 128     a grid of 2 x 2
///
/// DEVICES is what runtime.devices.backend may be: auto, none, cuda, emulated.
///
/// The part to take over is between the two lines; the rest plays the program around it: a process
/// grid, descriptors, local arrays, and a check of the results. ScaLAPACK itself is not needed.

#include <algorithm>
#include <array>
#include <base/standard_streams.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <heddle.hpp>
#include <mpi.h>
#include <numbers>
#include <string>
#include <vector>

namespace {

/// What BLACS_GRIDINFO tells: the process grid, and the place of this process in it.
struct Grid {
  std::int32_t rows;
  std::int32_t columns;
  std::int32_t row;
  std::int32_t column;
};

/// DESC(3) to DESC(9) of an array descriptor.
struct Descriptor {
  std::int64_t m;
  std::int64_t n;
  std::int64_t mb;
  std::int64_t nb;
  std::int32_t rsrc;
  std::int32_t csrc;
  std::int64_t lld;
};

// ---- from here: what a ScaLAPACK program needs --------------------------------------------------

[[noreturn]] void refuse(const std::string& text) {
  throw heddle::Error(heddle::ErrorCode::usage, text);
}

/// The processes in the order in which heddle deals out tiles: row by row through the grid, from
/// the process that has the first block. BLACS grids in any order, and any RSRC and CSRC, become
/// the same to heddle. Collective; before the node is made.
MPI_Comm in_heddles_order(MPI_Comm processes, const Grid& grid, const Descriptor& d) {
  const std::int32_t row = (grid.row - d.rsrc + grid.rows) % grid.rows;
  const std::int32_t column = (grid.column - d.csrc + grid.columns) % grid.columns;
  MPI_Comm ordered = MPI_COMM_NULL;
  MPI_Comm_split(processes, 0, row * grid.columns + column, &ordered);
  return ordered;
}

/// The matrix in `local`: MB x NB blocks become heddle's tiles, and stay where they are.
heddle::MatrixSpec spec_of(const Descriptor& d, const Grid& grid) {
  heddle::MatrixSpec spec(d.m, d.n);
  spec.layout.tile = d.mb;
  spec.layout.wide = d.nb == d.mb ? 0 : d.nb;
  spec.distribution = {grid.rows, grid.columns, 0};
  return spec;
}

/// Copies the rows that both tiles have.
std::int64_t copy_rows(const heddle::KernelArguments& arguments) {
  const heddle::TileView to = arguments.tiles[0];
  const heddle::TileView from = arguments.tiles[1];
  for (std::int64_t j = 0; j < to.columns; ++j) {
    for (std::int64_t i = 0; i < std::min(to.rows, from.rows); ++i) to(i, j) = from(i, j);
  }
  return 0;
}
constexpr heddle::Kernel copy_rows_kernel{.name = "copy rows", .host = copy_rows};

/// to := from, as many rows as both have. ScaLAPACK keeps right-hand sides in one process column,
/// heddle's solves beside the diagonal of the matrix: tiles that change the process are sent.
void move(heddle::Node& node, const heddle::Matrix<double>& to,
          const heddle::Matrix<double>& from) {
  heddle::UserStream stream = node.stream("move", {to, from});
  const std::int32_t rows = std::min(to.layout().tile_rows(), from.layout().tile_rows());
  for (heddle::TileColumn c{0}; c.value() < to.layout().tile_columns(); ++c) {
    for (heddle::TileRow i{0}; i.value() < rows; ++i) {
      stream.insert(copy_rows_kernel, {read_write(to(i, c)), read(from(i, c))});
    }
  }
  stream.end().wait();
}

void check(const Descriptor& a, const Descriptor& b) {
  if (a.mb != a.nb || b.mb != a.mb) refuse("MB and NB of A and MB of B must be the same");
  if (b.nb > a.nb) refuse("NB of B must not be larger than that of A");
  if (a.rsrc != b.rsrc || a.csrc != b.csrc) refuse("RSRC and CSRC of A and B must be the same");
  if (a.m != b.m) refuse("A and B must have the same number of rows");
}

/// pdposv with UPLO = 'L': A becomes its factor L, B the solution; what lies above the diagonal of
/// A is neither read nor written. Returns LAPACK's info, the same on all processes.
std::int64_t solve_positive_definite(heddle::Node& node, const Grid& grid, double* a_local,
                                     const Descriptor& a_desc, double* b_local,
                                     const Descriptor& b_desc) {
  check(a_desc, b_desc);
  // A wrapped matrix stays on the host. Devices get a copy; nothing is sent between processes.
  const bool is_copied = node.devices() > 0;
  heddle::MatrixSpec a_spec = spec_of(a_desc, grid);
  a_spec.storage = heddle::Storage::lower;
  a_spec.distribution.devices = node.devices();
  heddle::Matrix<double> a =
      is_copied ? node.matrix<double>(a_spec) : node.wrap(a_local, a_desc.lld, a_spec);
  if (is_copied) a.copy_from(a_local, a_desc.lld);
  const heddle::Matrix<double> b = node.wrap(b_local, b_desc.lld, spec_of(b_desc, grid));
  heddle::MatrixSpec x_spec = heddle::right_hand_sides_spec(a, b_desc.n);
  x_spec.layout.wide = b_desc.nb;
  const heddle::Matrix<double> x = node.matrix<double>(x_spec);

  const heddle::JobResult result = node.submit(heddle::cholesky(a)).wait();
  if (result.status != heddle::JobResult::Status::done) return result.info;
  if (is_copied) a.copy_to(a_local, a_desc.lld);
  move(node, x, b);
  node.submit(heddle::solve_cholesky(a, x)).wait();
  move(node, b, x);
  return 0;
}

/// pdgels with TRANS = 'N' and M >= N: the first N rows of B become the solution. A holds the
/// reflectors and R of a tile QR, which LAPACK's routines cannot read; B's other rows are what is
/// left of Q^T B.
void solve_least_squares(heddle::Node& node, const Grid& grid, double* a_local,
                         const Descriptor& a_desc, double* b_local, const Descriptor& b_desc) {
  check(a_desc, b_desc);
  // A stays where it is; the factors of its reflectors and R get memory of heddle's.
  const heddle::QrFactors q =
      heddle::qr(node, node.wrap(a_local, a_desc.lld, spec_of(a_desc, grid)));
  const heddle::QrOperand b = q.operand(node.wrap(b_local, b_desc.lld, spec_of(b_desc, grid)));
  heddle::MatrixSpec x_spec = heddle::right_hand_sides_spec(q.r(), b_desc.n);
  x_spec.layout.wide = b_desc.nb;
  const heddle::Matrix<double> x = node.matrix<double>(x_spec);

  node.submit(q.factorize());
  node.submit(q.apply_q_transposed(b));
  node.submit(heddle::solve_upper(q.r(), x, b.top)).wait();
  move(node, b.x, x);
}

// ---- to here ------------------------------------------------------------------------------------

/// ScaLAPACK's numroc: how many of `count` rows or columns this process has.
std::int64_t numroc(std::int64_t count, std::int64_t block, std::int32_t me, std::int32_t source,
                    std::int32_t processes) {
  const std::int64_t mine = (me - source + processes) % processes;
  const std::int64_t blocks = count / block;
  const std::int64_t own = blocks / processes + (mine < blocks % processes ? 1 : 0);
  return own * block + (mine == blocks % processes ? count % block : 0);
}

/// A distributed array whose elements are known.
class LocalArray {
 public:
  LocalArray(const Grid& grid, Descriptor d) : grid_(grid), desc(d) {
    rows_ = numroc(d.m, d.mb, grid.row, d.rsrc, grid.rows);
    columns_ = numroc(d.n, d.nb, grid.column, d.csrc, grid.columns);
    desc.lld = rows_ + padding;  // rows behind the matrix, which must stay untouched
    values_.assign(static_cast<std::size_t>(desc.lld * std::max<std::int64_t>(1, columns_)), guard);
  }

  [[nodiscard]] double* data() { return values_.data(); }

  template <class Element>
  void fill(const Element& element) {
    visit([&](double& value, std::int64_t i, std::int64_t j) { value = element(i, j); });
  }

  /// Calls `visit(value, i, j)` for each element here, with its global position from 0.
  template <class Visit>
  void visit(const Visit& visitor) {
    for (std::int64_t j = 0; j < columns_; ++j) {
      for (std::int64_t i = 0; i < rows_; ++i) {
        visitor(at(i, j), global(i, desc.mb, grid_.row, desc.rsrc, grid_.rows),
                global(j, desc.nb, grid_.column, desc.csrc, grid_.columns));
      }
    }
  }

  [[nodiscard]] bool is_guarded() {
    bool intact = true;
    for (std::int64_t j = 0; j < columns_; ++j) {
      for (std::int64_t i = rows_; i < desc.lld; ++i) intact = intact && at(i, j) == guard;
    }
    return intact;
  }

 private:
  static constexpr std::int64_t padding = 3;
  static constexpr double guard = -7;

  [[nodiscard]] double& at(std::int64_t i, std::int64_t j) {
    return values_[static_cast<std::size_t>(i + j * desc.lld)];
  }
  static std::int64_t global(std::int64_t i, std::int64_t block, std::int32_t me,
                             std::int32_t source, std::int32_t processes) {
    return (i / block * processes + (me - source + processes) % processes) * block + i % block;
  }

  Grid grid_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<double> values_;

 public:
  Descriptor desc;
};

/// A(i, j) = min(i, j) + 1: its factor L has a one everywhere on and below the diagonal.
double element(std::int64_t i, std::int64_t j) {
  return static_cast<double>(std::min(i, j) + 1);
}

double solution(std::int64_t i, std::int64_t side) {
  return static_cast<double>(i % 7 + side + 1);
}

/// `worst` becomes the error if that is larger, or infinite if the value is no number.
void compare(double& worst, double value, double expected) {
  const double error = std::abs(value - expected);
  worst = std::max(worst, std::isfinite(error) ? error : HUGE_VAL);
}

/// The largest error of L and X on this process; infinite where memory behind them was touched.
double positive_definite(heddle::Node& node, const Grid& grid, LocalArray& a, LocalArray& b) {
  const std::int64_t n = a.desc.n;
  a.fill(element);
  b.fill([n](std::int64_t i, std::int64_t side) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += element(i, k) * solution(k, side);
    return sum;
  });
  const std::int64_t info = solve_positive_definite(node, grid, a.data(), a.desc, b.data(), b.desc);
  double worst = info == 0 && a.is_guarded() && b.is_guarded() ? 0 : HUGE_VAL;
  a.visit([&](double value, std::int64_t i, std::int64_t j) {
    compare(worst, value, i >= j ? 1 : element(i, j));
  });
  b.visit([&](double value, std::int64_t i, std::int64_t side) {
    compare(worst, value, solution(i, side));
  });
  return worst;
}

/// Columns of waves, which are orthogonal to each other.
double wave(std::int64_t i, std::int64_t j, std::int64_t rows) {
  return std::cos(std::numbers::pi * static_cast<double>(j) * (static_cast<double>(i) + 0.5) /
                  static_cast<double>(rows));
}

/// The same for the solution of least squares: B is what the first and the last column make, and
/// a wave that no column explains.
double least_squares(heddle::Node& node, const Grid& grid, LocalArray& a, LocalArray& b) {
  const std::int64_t m = a.desc.m;
  const std::int64_t n = a.desc.n;
  a.fill([m](std::int64_t i, std::int64_t j) { return wave(i, j, m); });
  b.fill([m, n](std::int64_t i, std::int64_t side) {
    return wave(i, 0, m) + static_cast<double>(side + 2) * wave(i, n - 1, m) + wave(i, n + 1, m);
  });
  solve_least_squares(node, grid, a.data(), a.desc, b.data(), b.desc);
  double worst = a.is_guarded() && b.is_guarded() ? 0 : HUGE_VAL;
  b.visit([&](double value, std::int64_t i, std::int64_t side) {
    if (i >= n) return;
    const double expected = i == 0 ? 1 : i == n - 1 ? static_cast<double>(side + 2) : 0;
    compare(worst, value, expected);
  });
  return worst;
}

/// A grid that is as square as can be, its processes column by column, as BLACS numbers them with
/// ORDER = 'C'.
Grid make_grid() {
  int processes = 1;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int rows = static_cast<int>(std::sqrt(processes));
  while (processes % rows != 0) --rows;
  return {rows, processes / rows, rank % rows, rank / rows};
}

int run(std::int64_t n, std::int64_t block, std::int64_t sides, const std::string& devices) {
  const Grid grid = make_grid();
  // The first block is in the last process row and column, to show that this may be.
  const auto descriptor = [&](std::int64_t rows, std::int64_t columns) {
    return Descriptor{rows, columns, block, block, grid.rows - 1, grid.columns - 1, 0};
  };
  LocalArray a(grid, descriptor(n, n));
  LocalArray b(grid, descriptor(n, sides));
  LocalArray tall(grid, descriptor(3 * n, n / 2));
  LocalArray tall_sides(grid, descriptor(3 * n, sides));

  MPI_Comm ordered = in_heddles_order(MPI_COMM_WORLD, grid, a.desc);
  std::array<double, 2> errors{};
  bool first = false;
  {
    heddle::Node node(
        heddle::Config::from_text("runtime: {devices: {backend: " + devices + "}}\n", "example"),
        ordered);
    errors = {positive_definite(node, grid, a, b), least_squares(node, grid, tall, tall_sides)};
    node.all_reduce(errors, heddle::Reduction::maximum);
    first = node.rank() == 0;
    node.stop();
  }
  MPI_Comm_free(&ordered);
  const bool good = errors[0] < 1e-6 && errors[1] < 1e-10;
  if (first) {
    std::printf("grid %d x %d, blocks of %lld: largest error like pdposv %.2g, like pdgels %.2g\n",
                grid.rows, grid.columns, static_cast<long long>(block), errors[0], errors[1]);
    std::printf("%s\n", good ? "all is well" : "A RESULT IS WRONG");
  }
  return good ? 0 : 1;
}

std::int64_t number(int count, char** words, int at, std::int64_t otherwise, std::int64_t least) {
  if (at >= count) return otherwise;
  char* end = nullptr;
  const long long value = std::strtoll(words[at], &end, 10);
  if (*end != '\0' || value < least || value > 100'000) {
    refuse("usage: from_scalapack [N [NB [NRHS [DEVICES]]]], numbers up to 100000, N from 4 on");
  }
  return value;
}

}  // namespace

int main(int count, char** words) {
  // First of all: else what is printed could go into a file or socket that has got the number.
  heddle::open_standard_streams();
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  try {
    status = run(number(count, words, 1, 1000, 4), number(count, words, 2, 128, 1),
                 number(count, words, 3, 2, 1), count > 4 ? words[4] : "auto");
  } catch (const heddle::Error& error) {
    static_cast<void>(std::fprintf(stderr, "from_scalapack: %s\n", error.what()));
    status = heddle::exit_status(error.code());
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "from_scalapack: %s\n", error.what()));
    status = 1;
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
