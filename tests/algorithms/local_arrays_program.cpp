/// Matrices that enter and leave through the nodes' own arrays and through files, on any number of
/// nodes, with what heddle.hpp offers.

#include "heddle.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <mpi.h>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "algorithms/matrix/generators.hpp"

namespace {

using heddle::Matrix;
using heddle::MatrixSpec;
using heddle::Node;
using heddle::Storage;

constexpr double untouched = -7;

double element(std::int64_t i, std::int64_t j) {
  return static_cast<double>(1000 * i + j + 1);
}

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  static_cast<void>(std::fprintf(stderr, "wrong: %s\n", what.c_str()));
}

/// All nodes throw Error(usage) with the text; the node goes on.
void expect_refused(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    expect(false, "not refused: " + text);
  } catch (const heddle::Error& error) {
    expect(error.code() == heddle::ErrorCode::usage &&
               std::string(error.what()).find(text) != std::string::npos,
           std::string("refused with '") + error.what() + "', not '" + text + "'");
  }
}

/// An array of a node with guards behind each column.
struct Array {
  static constexpr std::int64_t padding = 2;
  std::int64_t rows;
  std::int64_t columns;
  std::vector<double> values;

  explicit Array(const Matrix<double>& m)
      : rows(m.local_rows()),
        columns(m.local_columns()),
        values(static_cast<std::size_t>((rows + padding) * columns + 1), untouched) {}
  [[nodiscard]] std::int64_t leading() const { return rows + padding; }
  double& operator()(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i + j * leading())];
  }
};

/// Which of `count` elements in pieces of `size` are those of process `me` of `processes`, in
/// order.
std::vector<std::int64_t> own(std::int64_t count, std::int64_t size, int me, int processes) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < count; ++i) {
    if (i / size % processes == me) all.push_back(i);
  }
  return all;
}

/// Copies to and from the arrays, whose layout is that of block-cyclic libraries.
void check_cyclic(Node& node, const MatrixSpec& spec) {
  Matrix<double> m = node.matrix<double>(spec);
  m.fill(element);
  Array array(m);
  m.copy_to(array.values.data(), array.leading());
  const heddle::Distribution& d = m.distribution();
  const auto rows = own(m.rows(), m.layout().tile, node.rank() / d.grid_columns, d.grid_rows);
  const auto columns =
      own(m.columns(), m.layout().wide_width(), node.rank() % d.grid_columns, d.grid_columns);
  expect(array.rows == static_cast<std::int64_t>(rows.size()) &&
             array.columns == static_cast<std::int64_t>(columns.size()),
         "the size of a node's part");
  const bool lower = m.storage() == Storage::lower;
  const std::int64_t tile = m.layout().tile;
  for (std::int64_t j = 0; j < array.columns; ++j) {
    for (std::int64_t i = 0; i < array.leading(); ++i) {
      const auto column = columns[static_cast<std::size_t>(j)];
      const bool is_padding = i >= array.rows;
      const auto row = is_padding ? 0 : rows[static_cast<std::size_t>(i)];
      const bool is_copied = !is_padding && (!lower || row >= column);
      expect(array(i, j) == (is_copied ? element(row, column) : untouched),
             "element " + std::to_string(i) + ", " + std::to_string(j) + " of a part");
      // What comes back: twice as much, and rubbish where nothing is taken from.
      array(i, j) = is_copied ? 2 * array(i, j) : 1e300;
    }
  }
  m.copy_from(array.values.data(), array.leading());
  Matrix<double> twice = node.matrix<double>(spec);
  twice.fill([](std::int64_t i, std::int64_t j) { return 2 * element(i, j); });
  double worst = 0;
  std::vector<std::vector<double>> tiles;
  // Tiles as wholes: what is above the diagonal of a diagonal tile has become 0.
  for (Matrix<double>* matrix : {&m, &twice}) {
    std::vector<double>& values =
        tiles.emplace_back(static_cast<std::size_t>(spec.layout.rows * spec.layout.columns), 0.0);
    matrix->for_each_tile([&, l = matrix->layout()](heddle::TileRow i, heddle::TileColumn c,
                                                    heddle::TileView view) {
      for (std::int64_t b = 0; b < view.columns; ++b) {
        for (std::int64_t a = 0; a < view.rows; ++a) {
          values[static_cast<std::size_t>(l.row_begin(i) + a + (l.column_begin(c) + b) * l.rows)] =
              view(a, b);
        }
      }
    });
  }
  for (std::size_t k = 0; k < tiles[0].size(); ++k) {
    worst = std::max(worst, std::abs(tiles[0][k] - tiles[1][k]));
  }
  expect(worst == 0, "what copy_from() has left, in tiles of " + std::to_string(tile));
}

/// Right-hand sides lie beside the diagonal: each node has whole rows of them.
void check_sides(Node& node, const Matrix<double>& a) {
  Matrix<double> x = heddle::right_hand_sides(a, 5);
  x.fill(element);
  Array array(x);
  x.copy_to(array.values.data(), array.leading());
  std::int64_t row = 0;
  for (heddle::TileRow i{0}; i < x.layout().end_row(); ++i) {
    if (x.home(i, heddle::TileColumn{0}).node.value() != node.rank()) continue;
    for (std::int64_t k = 0; k < x.layout().row_count(i); ++k, ++row) {
      for (std::int64_t j = 0; j < 5; ++j) {
        expect(array(row, j) == element(x.layout().row_begin(i) + k, j), "right-hand sides");
      }
    }
  }
  expect(row == array.rows && array.columns == 5, "the size of a part of right-hand sides");
}

void check_refusals(Node& node, const MatrixSpec& spec) {
  Matrix<double> m = node.matrix<double>(spec);
  m.fill(element);
  Array array(m);
  // Wrong on the last node only.
  const bool is_wrong = node.rank() == node.size() - 1;
  expect_refused(
      [&] { m.copy_to(array.values.data(), is_wrong ? array.rows - 1 : array.leading()); },
      "distance of");
  expect_refused([&] { m.copy_from(is_wrong ? nullptr : array.values.data(), array.leading()); },
                 "no memory was given");
  MatrixSpec contradictory(10, 10);
  contradictory.distribution.devices = 1;
  expect_refused([&] { static_cast<void>(node.matrix<double>(contradictory)); }, "layout.tile");
  contradictory = MatrixSpec(10, 10);
  contradictory.layout.strip = 4;
  expect_refused([&] { static_cast<void>(node.matrix<double>(contradictory)); }, "layout.tile");
}

/// R's tile rows go round the grid in groups; each element of a stored tile is in the array once.
void check_triangle(Matrix<double> r) {
  Array array(r);
  std::fill(array.values.begin(), array.values.end(), 0.0);
  r.copy_to(array.values.data(), array.leading());
  std::vector<double> copied;
  for (const double value : array.values) {
    if (value != 0) copied.push_back(value);
  }
  std::mutex mutex;
  std::vector<double> stored;
  r.for_each_tile([&](heddle::TileRow, heddle::TileColumn, heddle::TileView tile) {
    const std::lock_guard lock(mutex);
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      for (std::int64_t i = 0; i < tile.rows; ++i) {
        if (tile(i, j) != 0) stored.push_back(tile(i, j));
      }
    }
  });
  std::sort(copied.begin(), copied.end());
  std::sort(stored.begin(), stored.end());
  expect(copied == stored, "a node's part of R");
}

/// QR with the factors' memory made for it, from an array into an array: x of min |b - A x|.
void check_least_squares(Node& node, const MatrixSpec& spec) {
  const auto value = [](std::int64_t i, std::int64_t j) {
    return i == j ? 3.0 : 1.0 / static_cast<double>(1 + i + 2 * j);
  };
  const auto solution = [](std::int64_t i, std::int64_t j) {
    return static_cast<double>(i + 1) - 3.0 * static_cast<double>(j);
  };
  const std::int64_t n = spec.layout.columns;
  Matrix<double> a = node.matrix<double>(spec);
  a.fill(value);
  const heddle::QrFactors q = heddle::qr(node, a);
  node.submit(q.factorize());
  heddle::QrOperand b = q.operand(2);
  b.x.fill([&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += value(i, k) * solution(k, j);
    return sum;
  });
  Matrix<double> x = heddle::right_hand_sides(q.r(), 2);
  node.submit(q.apply_q_transposed(b));
  node.submit(heddle::solve_upper(q.r(), x, b.top)).wait();
  Matrix<double> expected = node.matrix<double>(x.spec());
  expected.fill(solution);
  Array is(x);
  Array wanted(x);
  x.copy_to(is.values.data(), is.leading());
  expected.copy_to(wanted.values.data(), wanted.leading());
  double worst = 0;
  for (std::size_t k = 0; k < is.values.size(); ++k) {
    worst = std::max(worst, std::abs(is.values[k] - wanted.values[k]));
  }
  expect(worst < 1e-9, "a least-squares solution is " + std::to_string(worst) + " off");
  expect(!q.first_dependent_column().has_value(), "no column is dependent");
  check_triangle(q.r());
}

/// Through files: what was written comes back, and symmetric matrices are checked.
void check_files(Node& node, const std::string& folder) {
  const std::string path = folder + "/local-arrays.npy";
  Matrix<double> m = node.matrix<double>(30, 20);
  m.fill(element);
  heddle::write_matrix(m, path);
  const Matrix<double> again = heddle::read_matrix(node, path);
  expect(again.rows() == 30 && again.columns() == 20, "the size of a matrix from a file");
  Array is(again);
  Array wanted(m);
  again.copy_to(is.values.data(), is.leading());
  m.copy_to(wanted.values.data(), wanted.leading());
  expect(is.values == wanted.values, "a matrix comes back from a file");
  expect_refused([&] { heddle::read_matrix(path, node.matrix<double>(20, 30)); }, "as large");
  expect_refused([&] { static_cast<void>(heddle::read_matrix(node, path + ".no")); }, path);

  heddle::GeneratorOptions options;
  options.kind = heddle::GeneratorKind::random;
  Matrix<double> square = node.matrix<double>(20, 20);
  heddle::generate(options, square);
  heddle::write_matrix(square, path);
  expect_refused([&] { static_cast<void>(heddle::read_matrix(node, path, Storage::lower)); },
                 "not symmetric");
  options.kind = heddle::GeneratorKind::spd;
  Matrix<double> a = node.matrix<double>(20, 20, Storage::lower);
  heddle::generate(options, a);
  expect(node.submit(heddle::cholesky(a)).wait().status == heddle::JobResult::Status::done,
         "a generated matrix is positive definite");
  node.barrier();
  if (node.rank() == 0) ::unlink(path.c_str());
}

int run(int rows, int columns, const std::string& folder) {
  Node node(heddle::Config::from_text("runtime: {cpu_workers: 2}\n", "local arrays"),
            MPI_COMM_WORLD);
  const heddle::Distribution grid{rows, columns, 0};
  const MatrixSpec general({.rows = 37, .columns = 29, .tile = 4, .wide = 6}, grid);
  const MatrixSpec strips({.rows = 23, .columns = 23, .tile = 5, .strip = 2, .small = 1}, grid,
                          Storage::lower);
  check_cyclic(node, general);
  check_cyclic(node, strips);
  check_cyclic(node, MatrixSpec({.rows = 3, .columns = 2, .tile = 5}, grid));
  check_sides(node, node.matrix<double>(strips));
  check_refusals(node, general);
  check_least_squares(node, heddle::qr_spec(node, 60, 11));
  check_least_squares(node, MatrixSpec({.rows = 50, .columns = 20, .tile = 8, .wide = 4}, grid));
  check_files(node, folder);
  double all = failures;
  node.all_reduce({&all, 1}, heddle::Reduction::sum);
  if (node.rank() == 0 && all == 0) std::printf("all is well\n");
  node.stop();
  return all == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  int provided = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_SERIALIZED, &provided);
  int status = 1;
  try {
    if (count == 4) status = run(std::stoi(words[1]), std::stoi(words[2]), words[3]);
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "local_arrays_program: %s\n", error.what()));
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
