#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/matrix/generated_source.hpp"
#include "config/config.hpp"
#include "config/problem.hpp"

namespace heddle {

/// The problem: sources of the matrix and right-hand sides, and their sizes, known before anything
/// of size n is allocated.
class Problem {
 public:
  /// Opens the files and checks that the shapes match. Throws Error(usage).
  explicit Problem(const config::Problem& wanted);

  [[nodiscard]] const config::Problem& wanted() const { return wanted_; }
  [[nodiscard]] std::int64_t m() const { return m_; }          ///< rows
  [[nodiscard]] std::int64_t n() const { return n_; }          ///< columns
  [[nodiscard]] std::int64_t sides() const { return sides_; }  ///< right-hand sides; 0: none
  [[nodiscard]] bool has_sides() const { return wanted_.rhs.has_value(); }
  /// The right-hand side is a one-dimensional array, so the solution will be one.
  [[nodiscard]] bool side_is_vector() const { return side_is_vector_; }
  /// A text file, whose elements stay in memory.
  [[nodiscard]] bool keeps_elements() const { return keeps_elements_; }
  [[nodiscard]] bool is_symmetric_by_construction() const { return is_symmetric_; }

  /// How tasks make the matrix's tiles where they live; nothing: its elements have to be read.
  [[nodiscard]] std::optional<GeneratedKind> generated() const;

  /// For messages: "problem.matrix: 'k.npy'".
  [[nodiscard]] std::string matrix_name() const;
  [[nodiscard]] std::string sides_name() const;
  /// For the plan: "'k.npy' (NumPy, 400 x 400, C order)".
  [[nodiscard]] std::string matrix_description() const;
  [[nodiscard]] std::string sides_description() const;

  /// The sources; generated matrices are set up at the first call (kriging and spd keep a few
  /// numbers per row).
  [[nodiscard]] MatrixSource& matrix();
  [[nodiscard]] MatrixSource& right_hand_sides();

 private:
  void check_shape() const;

  config::Problem wanted_;
  std::unique_ptr<MatrixSource> matrix_;
  std::unique_ptr<MatrixSource> right_hand_sides_;
  std::int64_t m_ = 0;
  std::int64_t n_ = 0;
  std::int64_t sides_ = 0;
  bool side_is_vector_ = false;
  bool keeps_elements_ = false;
  bool is_symmetric_ = true;
};

}  // namespace heddle
