#include "apps/problem.hpp"

#include <fmt/core.h>

#include "algorithms/matrix/generated_kind.hpp"
#include "algorithms/matrix/matrix_file.hpp"
#include "algorithms/matrix/mtx_file.hpp"
#include "base/error.hpp"
#include "config/problem.hpp"
#include "config/words.hpp"

namespace heddle {
namespace {

GeneratorOptions generator_options(const config::Matrix& matrix) {
  GeneratorOptions options;
  options.kind = generator_kind(config::name_of(*matrix.generate)).value();
  options.n = matrix.n;
  options.m = matrix.rows();
  options.seed = matrix.seed;
  options.condition = matrix.condition;
  options.range = matrix.range;
  options.smoothness = matrix.smoothness;
  options.nugget = matrix.nugget;
  options.rank = matrix.rank;
  options.distance = matrix.distance;
  return options;
}

}  // namespace

Problem::Problem(const config::Problem& wanted) : wanted_(wanted) {
  if (wanted.matrix.file) {
    matrix_ = open_matrix_file(*wanted.matrix.file);
    m_ = matrix_->rows();
    n_ = matrix_->columns();
    check_shape();
    is_symmetric_ = matrix_->is_symmetric();
    keeps_elements_ = dynamic_cast<const MtxSource*>(matrix_.get()) != nullptr;
  } else {
    m_ = wanted.matrix.rows();
    n_ = wanted.matrix.n;
  }
  if (!wanted.rhs) return;
  if (!wanted.rhs->file) {
    sides_ = wanted.rhs->columns;
    return;
  }
  right_hand_sides_ = open_matrix_file(*wanted.rhs->file, OneDimensional::as_column);
  sides_ = right_hand_sides_->columns();
  if (right_hand_sides_->rows() != m_) {
    throw Error(ErrorCode::usage,
                fmt::format("{} has {} rows, but the matrix has {}; each column of it is one "
                            "right-hand side",
                            sides_name(), right_hand_sides_->rows(), m_));
  }
  const auto* numpy = dynamic_cast<const NpySource*>(right_hand_sides_.get());
  side_is_vector_ = numpy != nullptr && numpy->is_vector();
}

/// The configuration has checked generated matrices.
void Problem::check_shape() const {
  if (wanted_.factorization == config::Factorization::qr) {
    if (m_ >= n_) return;
    throw Error(ErrorCode::usage,
                fmt::format("{} is {} x {}; qr needs at least as many rows as columns. For the "
                            "solution of least norm of such a system, factorize the transposed "
                            "matrix",
                            matrix_name(), m_, n_));
  }
  if (m_ == n_) return;
  throw Error(ErrorCode::usage,
              fmt::format("{} is {} x {}; cholesky needs a square matrix, qr takes one with more "
                          "rows than columns",
                          matrix_name(), m_, n_));
}

std::string Problem::matrix_name() const {
  return wanted_.matrix.file ? fmt::format("problem.matrix: '{}'", *wanted_.matrix.file)
                             : fmt::format("problem.matrix: the generated {} matrix",
                                           config::name_of(*wanted_.matrix.generate));
}

std::string Problem::sides_name() const {
  return wanted_.rhs->file ? fmt::format("problem.rhs: '{}'", *wanted_.rhs->file)
                           : "problem.rhs: the generated right-hand sides";
}

std::string Problem::matrix_description() const {
  if (matrix_ != nullptr) return matrix_->description();
  return fmt::format("generated: {}, {} x {}", config::name_of(*wanted_.matrix.generate), m_, n_);
}

std::string Problem::sides_description() const {
  if (!has_sides()) return "none";
  if (right_hand_sides_ != nullptr) return right_hand_sides_->description();
  return fmt::format("generated: random, {} x {}, seed {}", m_, sides_, wanted_.rhs->seed);
}

std::optional<GeneratedKind> Problem::generated() const {
  if (!wanted_.matrix.generate) return std::nullopt;
  return generated_kind(generator_options(wanted_.matrix));
}

MatrixSource& Problem::matrix() {
  if (matrix_ == nullptr) matrix_ = make_generator(generator_options(wanted_.matrix));
  return *matrix_;
}

MatrixSource& Problem::right_hand_sides() {
  if (right_hand_sides_ == nullptr) {
    GeneratorOptions options;
    options.kind = GeneratorKind::random;
    options.m = m_;
    options.n = sides_;
    options.seed = wanted_.rhs->seed;
    right_hand_sides_ = make_generator(options);
  }
  return *right_hand_sides_;
}

}  // namespace heddle
