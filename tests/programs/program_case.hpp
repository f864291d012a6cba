#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/qr/qr_matrix.hpp"
#include "node-runtime/node.hpp"
#include "tests/programs/recording.hpp"
#include "tests/support/simulated_cluster.hpp"

namespace heddle::simulation {

/// The programs of algorithms/, and one of a user's.
enum class Algorithm : std::uint8_t {
  cholesky,                     ///< of a
  solve_cholesky,               ///< x with a
  subtract_symmetric_product,   ///< y -= r x
  subtract_product,             ///< r -= a a^T
  qr,                           ///< of a matrix q of its own
  apply_q_transposed,           ///< with q
  apply_q,                      ///< with q
  apply_q_to_triangle,          ///< with q
  solve_upper,                  ///< with q's r and z's top
  subtract_general_product,     ///< z's x -= q's a times z's top
  subtract_transposed_product,  ///< z's top -= q's a transposed times z's x
  lu,                           ///< of a full matrix in square tiles
  multiply_lower,               ///< y -= a x, a counting as a triangle
  multiply_lower_transposed,    ///< x -= a^T y
  multiply_upper,               ///< z's top -= q's r times another one
  passing_symmetric_products,   ///< y -= r x for two x, with an r that passes by
  passing_products,             ///< two products with q's a, which passes by, and back
  symmetric_products,           ///< as those with an r that passes by
  products,                     ///< as those with an a of q that passes by
};
inline constexpr std::int32_t algorithm_count = 19;
[[nodiscard]] std::string_view name(Algorithm algorithm);

/// Jobs as recorded on some grid.
struct Recording {
  MatrixTable table;
  std::vector<RecordedJob> jobs;

  /// The first defect of a job, or nothing.
  [[nodiscard]] std::string defect() const;
};

/// One or several programs of the product on a random cluster; everything follows from the seed:
/// grids of 1x1 to 5x3 nodes with 0 to 3 devices each, tile sizes and edges of all kinds, windows
/// from 1, pools from the planned minimum, tasks divided or not, both placements.
struct ProgramCase {
  ProgramCase(std::uint64_t seed, std::vector<Algorithm> algorithms);

  Distribution distribution;
  TileLayout layout;  ///< of a and r
  std::int64_t sides = 0;
  std::int64_t inverse_block = 0;  ///< 0: Cholesky without inverse blocks
  std::int64_t qr_rows = 0;
  std::int64_t qr_columns = 0;
  QrLayout qr_layout;
  std::int32_t spare_count = 0;
  std::int64_t fine_small = 1;  ///< parts of tasks that CPU workers divide
  ClusterOptions cluster;
  std::vector<Algorithm> jobs;

  /// Walks the programs on the case's grid, or on one node. `node` lends handles of right-hand
  /// sides and temporaries; nothing runs on it.
  [[nodiscard]] Recording record(Node& node) const { return record_on(node, distribution); }
  [[nodiscard]] Recording record_on_one(Node& node) const { return record_on(node, {1, 1, 0}); }

  /// Runs what was recorded on the case's grid under the seeded scheduler.
  [[nodiscard]] Outcome run(const Recording& recording) const;

  /// "5 x 3 nodes, 2 devices, 7 x 7 in tiles of 3 ...", for messages.
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] Recording record_on(Node& node, const Distribution& grid) const;
};

/// Lends nodes for handles: one worker, nothing else. A node can make so many matrices in its life,
/// so now and then it is another one.
class HandleLender {
 public:
  [[nodiscard]] Node& node();

 private:
  std::unique_ptr<Node> node_;
  std::int32_t uses_ = 0;
};

/// What every tile that is not temporary holds after the jobs: a hash of all that made it.
[[nodiscard]] std::vector<Content> final_contents(const Recording& recording);

}  // namespace heddle::simulation
