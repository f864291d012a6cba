#include "algorithms/io/distributed_write.hpp"

#include <optional>

#include "algorithms/io/agreement.hpp"

namespace heddle {

void write_tiles(Matrix<double> matrix, const NpyWriter& writer) {
  Node& node = matrix.node();
  std::optional<Error> trouble;
  try {
    matrix.for_each_tile(
        [&writer, layout = matrix.layout()](TileRow i, TileColumn c, TileView tile) {
          writer.write(GlobalRow{layout.row_begin(i)}, GlobalColumn{layout.column_begin(c)}, tile);
        });
    writer.flush();
  } catch (const Error& error) {
    if (node.engine().failed()) throw;
    trouble = error;
  }
  agree(node, trouble);
}

}  // namespace heddle
