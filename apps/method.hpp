#pragma once

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/problem.hpp"
#include "apps/report.hpp"
#include "config/config.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// The plan of a run: matrices, still without memory, and the jobs on them.
struct Undertaking {
  enum class Use : std::uint8_t {
    matrix,  ///< to factorize, and the factors
    copy,    ///< for the verification, or Q as a matrix
    sides,   ///< right-hand sides, solutions, residuals
  };
  struct Held {
    Matrix<double> matrix;
    Use use = Use::matrix;
  };
  std::vector<Held> held;        ///< the matrix itself first
  std::vector<JobSpec> reading;  ///< that make the matrix
  std::optional<JobSpec> factorization;
  std::vector<JobSpec> solution;
  std::vector<JobSpec> verification;
  std::vector<JobSpec> results;  ///< before they are written: thin Q

  void verify_by(std::vector<JobSpec> jobs) {
    std::ranges::move(jobs, std::back_inserter(verification));
  }
};

/// Part of tiles_text() if CPU workers divide tasks; `fine` as in TileLayout.
[[nodiscard]] inline std::string divided_text(std::int64_t fine) {
  return fine == 0 ? std::string() : fmt::format("; CPUs divide tasks into parts of {}", fine);
}

/// Part of verification_text(), for verify: auto.
[[nodiscard]] std::string sampled_text(bool keeps_copy, bool is_generated);

/// Message for results that are not finite; `scaled` is what the user can scale.
[[nodiscard]] inline std::string beyond_doubles(const char* scaled) {
  return fmt::format(
      "The numbers of the problem leave the range of doubles. No results were written. Scale {}.",
      scaled);
}

/// A factorization method of `heddle solve`. Created on each node; calls are collective, in the
/// order of declaration. Errors that all nodes know are thrown as AgreedError.
class Method {
 public:
  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  /// The layout: the keys that the method uses, with all choices made.
  [[nodiscard]] virtual config::Layout layout() const = 0;
  [[nodiscard]] virtual const Distribution& distribution() const = 0;
  /// "36 of 64 x 64", for the plan; `tiles` is the number of stored tiles on all nodes.
  [[nodiscard]] virtual std::string tiles_text(std::int64_t tiles) const = 0;
  /// Estimated bytes on all nodes together, without counting tiles, and their purpose.
  [[nodiscard]] virtual double bytes_in_all() const = 0;
  [[nodiscard]] virtual std::string bytes_text() const = 0;
  [[nodiscard]] virtual Undertaking undertaking() = 0;
  /// The verification would like to keep a copy of the matrix, for which there is no room: it does
  /// without from now on. False: no copy is kept, or it cannot do without.
  virtual bool forgo_copy() { return false; }
  /// How results are verified, for the plan.
  [[nodiscard]] virtual std::string verification_text() const = 0;
  /// Tile of the reference products.
  [[nodiscard]] virtual TileLayout product_layout() const = 0;

  /// Creates the matrices, whose elements begin to come in. Devices warm up meanwhile, in
  /// `device_spare` bytes of each.
  virtual void begin_reading(std::uint64_t device_spare) = 0;
  /// Waits until all elements are in. Throws what is wrong with them.
  virtual void finish_reading() = 0;

  /// The factorization, which may be submitted before finish_reading(); devices have warmed up.
  [[nodiscard]] virtual JobSpec factorization() = 0;
  [[nodiscard]] virtual double flops() const = 0;

  /// What remains possible.
  enum class Prospect : std::uint8_t {
    solution,  ///< everything
    factor,    ///< a factor without a solution
    nothing,
  };
  /// Reports how the factorization ended.
  [[nodiscard]] virtual Prospect judge(const JobResult& result, Report& report) = 0;

  virtual void solve(Report& report) = 0;

  /// Stores its results in the report's residuals.
  virtual void verify(Prospect prospect, Report& report) = 0;

  [[nodiscard]] virtual Matrix<double> solution() = 0;
  [[nodiscard]] virtual Matrix<double> factor() = 0;
  /// The thin Q of QR, computed by this call.
  [[nodiscard]] virtual Matrix<double> explicit_q() = 0;
};

[[nodiscard]] std::unique_ptr<Method> make_cholesky(Node& node, Problem& problem);
[[nodiscard]] std::unique_ptr<Method> make_qr(Node& node, Problem& problem);
[[nodiscard]] std::unique_ptr<Method> make_method(Node& node, Problem& problem);

/// Creates matrices for planning, without memory and unknown to the node. Temporary ones are the
/// node's, as they have no memory.
class Shadows {
 public:
  explicit Shadows(Node& node) : node_(node) {}
  [[nodiscard]] Matrix<double> operator()(const MatrixSpec& spec) const;
  [[nodiscard]] static bool is_shadow(protocol::MatrixId id) { return id.value() >= first_id; }

 private:
  static constexpr std::int32_t first_id = 1 << 24;  // beyond the node's own ids
  Node& node_;
  mutable std::int32_t next_ = first_id;
};

}  // namespace heddle
