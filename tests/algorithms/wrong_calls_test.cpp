#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/matrix/generators.hpp"
#include "algorithms/qr/measures.hpp"
#include "algorithms/qr/qr_matrix.hpp"
#include "algorithms/reductions/measures.hpp"
#include "algorithms/reductions/verification.hpp"
#include "algorithms/solve/solve.hpp"
#include "base/error.hpp"
#include "node-runtime/node.hpp"

/// Wrong calls of the algorithms' public functions throw, name the function and the sizes, and
/// leave the node usable.
namespace heddle {
namespace {

class WrongCalls : public testing::Test {
 protected:
  [[nodiscard]] Matrix<double> matrix(std::int64_t rows, std::int64_t columns, Storage storage,
                                      std::int64_t tile = 4) {
    MatrixSpec spec(rows, columns, storage);
    spec.layout.tile = tile;
    return node.matrix<double>(spec);
  }
  [[nodiscard]] Matrix<double> lower(std::int64_t n) { return matrix(n, n, Storage::lower); }

  static void expect_refused(const std::function<void()>& call,
                             const std::vector<std::string>& texts) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      for (const std::string& text : texts) {
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
            << "'" << text << "' is not in: " << error.what();
      }
    }
  }
  void TearDown() override {
    Matrix<double> a = lower(8);
    a.fill([](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; });
    EXPECT_EQ(node.submit(cholesky(a)).wait().status, JobResult::Status::done);
  }

  Node node{
      Config::from_text("runtime: {cpu_workers: 1, devices: {backend: none}}\n", "wrong calls")};
};

}  // namespace

TEST_F(WrongCalls, cholesky_of_a_matrix_that_is_not_square_or_not_lower) {
  expect_refused([&] { static_cast<void>(cholesky(matrix(8, 6, Storage::lower))); },
                 {"cholesky: ", "8 x 6", "Storage::lower"});
  expect_refused([&] { static_cast<void>(cholesky(matrix(8, 8, Storage::full))); },
                 {"cholesky: ", "8 x 8", "Storage::lower"});
}

TEST_F(WrongCalls, cholesky_with_inverse_blocks_of_another_matrix) {
  const Matrix<double> inverses = node.matrix<double>(inverses_spec(lower(12), 2));
  expect_refused([&] { static_cast<void>(cholesky(lower(8), inverses)); },
                 {"cholesky: inverse blocks", "12 columns", "8 columns"});
  expect_refused([&] { static_cast<void>(inverses_spec(lower(8), 0)); },
                 {"inverses_spec: ", "0 columns"});
}

TEST_F(WrongCalls, residual_of_factors_of_another_layout) {
  expect_refused([&] { static_cast<void>(subtract_product(lower(8), lower(12))); },
                 {"subtract_product: ", "8 x 8", "12 x 12"});
  expect_refused(
      [&] { static_cast<void>(subtract_product(matrix(8, 8, Storage::full), lower(8))); },
      {"subtract_product: ", "Storage::lower"});
}

TEST_F(WrongCalls, solve_cholesky_with_right_hand_sides_of_another_matrix) {
  const Matrix<double> l = lower(8);
  expect_refused([&] { static_cast<void>(solve_cholesky(l, right_hand_sides(lower(12), 1))); },
                 {"solve_cholesky: ", "8 rows", "12", "right_hand_sides"});
  expect_refused([&] { static_cast<void>(solve_cholesky(l, matrix(8, 1, Storage::full))); },
                 {"solve_cholesky: ", "not beside the diagonal"});
  expect_refused(
      [&] {
        static_cast<void>(solve_cholesky(matrix(8, 8, Storage::full), right_hand_sides(l, 1)));
      },
      {"solve_cholesky: ", "Storage::lower"});
  expect_refused([&] { static_cast<void>(right_hand_sides(l, -1)); },
                 {"right_hand_sides: ", "-1 columns"});
}

TEST_F(WrongCalls, solve_upper_with_right_hand_sides_that_are_cut_otherwise) {
  const Matrix<double> r = matrix(8, 8, Storage::upper);
  const Matrix<double> x = right_hand_sides(r, 2);
  expect_refused([&] { static_cast<void>(solve_upper(r, x, right_hand_sides(r, 3))); },
                 {"solve_upper: b is 8 x 3", "x is 8 x 2"});
  expect_refused([&] { static_cast<void>(solve_upper(lower(8), x, x)); },
                 {"solve_upper: ", "Storage::upper"});
}

TEST_F(WrongCalls, products_of_matrices_that_do_not_fit) {
  const Matrix<double> a = matrix(12, 8, Storage::full);
  const Matrix<double> y = matrix(12, 2, Storage::full);
  const Matrix<double> x = matrix(8, 2, Storage::full);
  expect_refused([&] { static_cast<void>(subtract_product(x, a, y)); },
                 {"subtract_product: ", "y is 8 x 2", "A is 12 x 8", "x is 12 x 2"});
  expect_refused([&] { static_cast<void>(subtract_transposed_product(y, a, x)); },
                 {"subtract_transposed_product: ", "12 x 8"});
  expect_refused([&] { static_cast<void>(subtract_transposed_product(x, a, y, TileColumn{1})); },
                 {"subtract_transposed_product: tile column 1", "which has 1"});
  expect_refused([&] { static_cast<void>(subtract_transposed_product(y, a, y, TileColumn{0})); },
                 {"subtract_transposed_product: x is 12 x 2", "A is 12 x 8"});
  expect_refused([&] { static_cast<void>(subtract_symmetric_product(x, a, x)); },
                 {"subtract_symmetric_product: ", "12 x 8", "square"});
  expect_refused([&] { static_cast<void>(subtract_symmetric_product(x, lower(12), x)); },
                 {"subtract_symmetric_product: ", "8 x 2", "12 x 12"});
}

TEST_F(WrongCalls, qr_of_a_wide_matrix_or_with_blocks_wider_than_a_tile) {
  const QrLayout layout{.tile = 4, .inner = 2};
  expect_refused([&] { static_cast<void>(qr_specs(4, 8, layout, {})); },
                 {"qr_specs: ", "4 x 8", "rows as columns"});
  expect_refused([&] { static_cast<void>(qr_specs(8, 4, {.tile = 4, .inner = 5}, {})); },
                 {"qr_specs: ", "tiles of 4", "5 columns"});
}

TEST_F(WrongCalls, q_on_an_operand_of_another_factorization) {
  const QrLayout layout{.tile = 4, .inner = 2};
  const QrMatrix q = qr_matrix(node, 16, 8, layout, {});
  const QrOperand x = qr_operand(qr_matrix(node, 12, 8, layout, {}), 2);
  const auto texts = [](const std::string& function) {
    return std::vector<std::string>{function + ": the operand is 12 x 2", "16 x 8"};
  };
  expect_refused([&] { static_cast<void>(apply_q(q, x)); }, texts("apply_q"));
  expect_refused([&] { static_cast<void>(apply_q_transposed(q, x)); }, texts("apply_q_transposed"));
  expect_refused([&] { static_cast<void>(apply_q_to_triangle(q, x)); },
                 texts("apply_q_to_triangle"));
  expect_refused([&] { static_cast<void>(apply_q_to_triangle(q, qr_operand(q, 2))); },
                 {"apply_q_to_triangle: ", "explicit_q_operand"});
  expect_refused([&] { static_cast<void>(columns_of_product_spec(q.a, TileColumn{2})); },
                 {"columns_of_product_spec: tile column 2 of 2"});
}

TEST_F(WrongCalls, norms_and_residuals_of_what_does_not_fit) {
  const Matrix<double> full = matrix(8, 8, Storage::full);
  expect_refused([&] { static_cast<void>(symmetric_one_norm(full)); },
                 {"symmetric_one_norm: ", "8 x 8", "Storage::lower"});
  expect_refused([&] { static_cast<void>(log_determinant_of_factor(full)); },
                 {"log_determinant_of_factor: ", "Storage::lower"});
  expect_refused(
      [&] {
        static_cast<void>(weighted_norms(full, {1, 2}));
      },
      {"weighted_norms: 2 weights for 8 rows"});
  expect_refused(
      [&] {
        static_cast<void>(largest_quotients(full, {1, 2}));
      },
      {"largest_quotients: 2 weights for 8 rows"});
  expect_refused(
      [&] {
        static_cast<void>(scaled_solution_residual({1}, {1, 1}, {1}, 1, 1));
      },
      {"scaled_solution_residual: norms of 1 differences, 2 solutions"});
  expect_refused([&] { static_cast<void>(scaled_normal_residual({1}, {1}, {}, 1, 1)); },
                 {"scaled_normal_residual: ", "0 right-hand sides"});
}

TEST_F(WrongCalls, reading_a_source_into_a_matrix_of_another_size) {
  GeneratorOptions options;
  options.kind = GeneratorKind::identity;
  options.n = 6;
  const std::unique_ptr<MatrixSource> made = make_generator(options);
  const MatrixSource& source = *made;
  expect_refused(
      [&] { read_elements(source, matrix(8, 8, Storage::full), Checked::before, "the file"); },
      {"MatrixReading: the file is 6 x 6", "8 x 8"});
  expect_refused([&] { read_elements(source, lower(8), Checked::before, "the file"); },
                 {"MatrixReading: the file is 6 x 6", "8 x 8"});
  expect_refused([&] { static_cast<void>(compare(lower(8), source)); },
                 {"compare: the source is 6 x 6", "8 x 8"});
  std::vector<double> elements(4);
  expect_refused(
      [&] {
        source.read(GlobalRow{5}, GlobalColumn{0}, {elements.data(), 2, 2, 2});
      },
      {"MatrixSource::read: 2 x 2 from (5, 0) on", "6 x 6"});
  expect_refused(
      [&] {
        source.read(GlobalRow{0}, GlobalColumn{0}, {elements.data(), 2, 2, 1});
      },
      {"MatrixSource::read: ", "leading dimension of 1"});
  expect_refused([&] { source.read_diagonal(4, elements); },
                 {"MatrixSource::read_diagonal: 4 elements from 4 on", "has 6"});
}

TEST_F(WrongCalls, agreeing_in_an_order_that_is_none) {
  expect_refused([&] { agree(node, Error(ErrorCode::usage, "x"), {std::nan("")}); },
                 {"agree: a key of the order is not a number"});
}

}  // namespace heddle
