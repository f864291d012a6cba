#include "algorithms/io/distributed_write.hpp"

#include <fmt/core.h>

#include "algorithms/io/agreement.hpp"
#include "algorithms/matrix/checks.hpp"

namespace heddle {

void write_tiles(Matrix<double> matrix, const NpyWriter& writer) {
  const auto write = [&writer, layout = matrix.layout()](TileRow i, TileColumn c,
                                                         std::int64_t first, TileView part) {
    const GlobalRow row{layout.row_begin(i)};
    const GlobalColumn column{layout.column_begin(c) + first};
    if (const auto element = find_non_finite(part, row, column)) {
      throw Error(ErrorCode::internal,
                  fmt::format("a result is not finite: it has {}. No results were written. "
                              "Scale the matrix.",
                              describe(*element)));
    }
    writer.write(row, column, part);
  };
  read_together(matrix, write, [&] { writer.flush(); });
}

}  // namespace heddle
