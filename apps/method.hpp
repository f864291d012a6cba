#pragma once

#include <cstdint>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "config/config.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// What a run is going to hold and do, for the plan: matrices that have no memory yet, and jobs on
/// them.
struct Undertaking {
  enum class Use : std::uint8_t {
    matrix,  ///< what is factorized, and the factors
    copy,    ///< for the verification, or Q as a matrix
    sides,   ///< right-hand sides, solutions, residuals
  };
  struct Held {
    Matrix<double> matrix;
    Use use = Use::matrix;
  };
  std::vector<Held> held;  ///< the matrix itself first
  std::optional<JobSpec> factorization;
  std::vector<JobSpec> others;
};

/// What tiles_text() says where CPU workers divide tasks; `fine` as in TileLayout.
[[nodiscard]] inline std::string divided_text(std::int64_t fine) {
  return fine == 0 ? std::string() : fmt::format("; CPUs divide tasks into parts of {}", fine);
}

/// What to say and do when results are not finite; `scaled` is what a user can scale.
[[nodiscard]] inline std::string beyond_doubles(const char* scaled) {
  return fmt::format(
      "The numbers of the problem leave the range of doubles. No results were written. Scale {}.",
      scaled);
}

/// A way to factorize a problem: what `heddle solve` does for it beyond what all ways have in
/// common. Made on each node; the calls are collective and come in the order of their declaration.
/// Errors that all nodes know are thrown as AgreedError.
class Method {
 public:
  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  /// How the problem is cut: the keys that the method knows, none of them left open.
  [[nodiscard]] virtual config::Layout layout() const = 0;
  [[nodiscard]] virtual const Distribution& distribution() const = 0;
  /// "36 of 64 x 64", for the plan; `tiles` of the matrix are stored on all nodes.
  [[nodiscard]] virtual std::string tiles_text(std::int64_t tiles) const = 0;
  /// About so many bytes on all nodes together, found out without counting tiles, and what for.
  [[nodiscard]] virtual double bytes_in_all() const = 0;
  [[nodiscard]] virtual std::string bytes_text() const = 0;
  [[nodiscard]] virtual Undertaking undertaking() = 0;
  /// What the factorization is compared with: the tile of a product.
  [[nodiscard]] virtual TileLayout product_layout() const = 0;

  /// Makes the matrices and fills them.
  virtual void read() = 0;

  [[nodiscard]] virtual JobSpec factorization() = 0;
  [[nodiscard]] virtual double flops() const = 0;

  /// What is left to do.
  enum class Prospect : std::uint8_t {
    solution,  ///< everything
    factor,    ///< there is a factor, but it gives no solution
    nothing,
  };
  /// Says in the report how the factorization ended.
  [[nodiscard]] virtual Prospect judge(const JobResult& result, Report& report) = 0;

  virtual void solve(Report& report) = 0;

  /// Puts what it finds into the report's residuals.
  virtual void verify(Prospect prospect, Report& report) = 0;

  [[nodiscard]] virtual Matrix<double> solution() = 0;
  [[nodiscard]] virtual Matrix<double> factor() = 0;
  /// The thin Q of QR, computed now.
  [[nodiscard]] virtual Matrix<double> explicit_q() = 0;
};

[[nodiscard]] std::unique_ptr<Method> make_cholesky(Node& node, Problem& problem);
[[nodiscard]] std::unique_ptr<Method> make_qr(Node& node, Problem& problem);
[[nodiscard]] std::unique_ptr<Method> make_method(Node& node, Problem& problem);

/// Runs a job that cannot fail numerically.
void run_job(Node& node, JobSpec spec);

/// Numbers matrices for planning alone: no memory, unknown to the node. Temporary ones have no
/// memory anyway, and are the node's.
class Shadows {
 public:
  explicit Shadows(Node& node) : node_(node) {}
  [[nodiscard]] Matrix<double> operator()(const MatrixSpec& spec) const;
  [[nodiscard]] static bool is_shadow(protocol::MatrixId id) { return id.value() >= first_id; }

 private:
  static constexpr std::int32_t first_id = 1 << 24;  // beyond the ids that nodes give
  Node& node_;
  mutable std::int32_t next_ = first_id;
};

}  // namespace heddle
