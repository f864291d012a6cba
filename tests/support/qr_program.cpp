#include "tests/support/qr_program.hpp"

#include <utility>

namespace heddle::simulation {
namespace {

using protocol::Access;
using protocol::AccessMode;

class QrWriter {
 public:
  QrWriter(const TileLayout& layout, const Distribution& distribution)
      : layout_(layout), distribution_(distribution) {}

  QrProgram write(std::int32_t spare_count) {
    SimulatedMatrix matrix;
    matrix.spare_count = spare_count;
    for (TileColumn c{0}; c.value() < layout_.tile_columns(); ++c) {
      for (TileRow i{0}; i.value() < layout_.tile_rows(); ++i) {
        matrix.homes.push_back(distribution_.home(layout_, i, c));
      }
    }
    result_.matrices = {matrix, matrix};
    for (TileColumn c{0}; c.value() < layout_.tile_columns(); ++c) factor_column(c);
    return std::move(result_);
  }

 private:
  [[nodiscard]] Access access(std::int32_t matrix, TileRow i, TileColumn c, AccessMode mode) const {
    return {{protocol::MatrixId{matrix}, c.value() * layout_.tile_rows() + i.value()},
            distribution_.home(layout_, i, c),
            mode};
  }
  [[nodiscard]] Access a(TileRow i, TileColumn c, AccessMode mode) const {
    return access(0, i, c, mode);
  }
  [[nodiscard]] Access t(TileRow i, TileColumn c, AccessMode mode) const {
    return access(1, i, c, mode);
  }
  void insert(std::int32_t priority, std::vector<Access> accesses) {
    result_.program.statements.push_back({Statement::Kind::task, std::move(accesses), priority, 0});
  }

  void factor_column(TileColumn c) {
    using enum AccessMode;
    const TileRow top = layout_.diagonal_row(c);
    const TileColumn end{layout_.tile_columns()};
    insert(3, {a(top, c, read_write), t(top, c, AccessMode::write)});  // geqrt
    for (TileColumn d = c + 1; d < end; ++d) {                         // unmqr
      insert(1, {a(top, d, read_write), a(top, c, read), t(top, c, read)});
    }
    for (TileRow i = top + 1; i.value() < layout_.tile_rows(); ++i) {
      insert(2, {a(i, c, read_write), a(top, c, read_write), t(i, c, AccessMode::write)});  // tsqrt
      for (TileColumn d = c + 1; d < end; ++d) {                                            // tsmqr
        insert(0, {a(i, d, read_write), a(top, d, read_write), a(i, c, read), t(i, c, read)});
      }
    }
  }

  const TileLayout& layout_;
  const Distribution& distribution_;
  QrProgram result_;
};

}  // namespace

QrProgram qr_program(const TileLayout& layout, const Distribution& distribution,
                     std::int32_t spare_count) {
  return QrWriter(layout, distribution).write(spare_count);
}

std::int64_t qr_task_count(const TileLayout& layout) {
  std::int64_t count =
      0;  // each tile on or below the diagonal, on its column and those to the right
  for (TileColumn c{0}; c < layout.end_column(); ++c) {
    count += std::int64_t{layout.end_row() - layout.diagonal_row(c)} * (layout.end_column() - c);
  }
  return count;
}

}  // namespace heddle::simulation
