#pragma once

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/matrix/files.hpp"
#include "tests/support/dense.hpp"
#include "tests/system/process.hpp"

namespace heddle::testing {

enum class NpyOrder : std::uint8_t { c, fortran };
enum class NpyDimensions : std::uint8_t { two, one };

[[nodiscard]] std::string npy(const Dense& matrix, NpyOrder order = NpyOrder::fortran,
                              NpyDimensions dimensions = NpyDimensions::two);
[[nodiscard]] std::string mtx(const Dense& matrix, bool symmetric);
[[nodiscard]] Dense read_npy(const std::string& path);

/// Symmetric positive definite: 1 / (1 + |i - j|) and n on the diagonal.
[[nodiscard]] Dense spd(std::int64_t n);
[[nodiscard]] Dense sides(std::int64_t n, std::int64_t columns);

/// LAPACK's dpotrf and dposv: info, factor (zeros above) and solution.
struct Reference {
  std::int64_t info = 0;
  Dense factor;
  Dense solution;
};
[[nodiscard]] Reference reference(const Dense& matrix, const Dense& right_hand_sides);

/// LAPACK's dgeqrf and dgels for m >= n of full rank: R (signs are LAPACK's choice), least-squares
/// solutions, 2-norms of the residuals.
struct LeastSquares {
  Dense r;
  Dense solution;
  std::vector<double> residual_norms;
};
[[nodiscard]] LeastSquares least_squares(const Dense& matrix, const Dense& right_hand_sides);

/// m x n, well-conditioned, no symmetry.
[[nodiscard]] Dense tall(std::int64_t m, std::int64_t n);

/// Runs heddle in a folder of its own. Afterwards no process of it and no temporary file is there.
class HeddleRun : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Words of a command that runs heddle alone, or on `nodes` nodes.
  [[nodiscard]] static std::vector<std::string> alone(std::vector<std::string> words);
  [[nodiscard]] static std::vector<std::string> on(int nodes, std::vector<std::string> words);
  [[nodiscard]] Ended run(const std::vector<std::string>& words) const;

  /// Writes the problem file and runs it: `nodes` 0 is alone, without mpiexec.
  [[nodiscard]] Ended solve(const std::string& yaml, int nodes = 0,
                            const std::vector<std::string>& options = {}) const;
  /// The same, and expects status 0 and residuals below 10; the report.
  [[nodiscard]] nlohmann::json solved(const std::string& yaml, int nodes = 0,
                                      std::vector<std::string> options = {}) const;
  /// Expects exit status 2 and the parts in the one message on stderr; nothing was written.
  void expect_refused(const Ended& ended, const std::vector<std::string>& parts) const;

  TemporaryFolder folder_;
};

}  // namespace heddle::testing
