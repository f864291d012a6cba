#include "algorithms/io/distributed_write.hpp"

#include <fmt/core.h>
#include <optional>

#include "algorithms/io/agreement.hpp"
#include "algorithms/matrix/checks.hpp"

namespace heddle {

void write_tiles(Matrix<double> matrix, const NpyWriter& writer) {
  Node& node = matrix.node();
  std::optional<Error> trouble;
  try {
    matrix.for_each_tile(
        [&writer, layout = matrix.layout()](TileRow i, TileColumn c, TileView tile) {
          const GlobalRow row{layout.row_begin(i)};
          const GlobalColumn column{layout.column_begin(c)};
          if (const auto element = find_non_finite(tile, row, column)) {
            throw Error(ErrorCode::internal,
                        fmt::format("a result is not finite: it has {}. No results were written. "
                                    "Scale the matrix.",
                                    describe(*element)));
          }
          writer.write(row, column, tile);
        });
    writer.flush();
  } catch (const Error& error) {
    if (node.engine().failed()) throw;
    trouble = error;
  }
  agree(node, trouble);
}

}  // namespace heddle
