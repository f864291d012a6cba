#include "tests/support/cholesky_program.hpp"

namespace heddle::simulation {

using protocol::Access;
using protocol::AccessMode;

namespace {

class CholeskyWriter {
 public:
  CholeskyWriter(const TileLayout& layout, const Distribution& distribution)
      : layout_(layout), distribution_(distribution) {}

  CholeskyProgram write(bool releases) {
    for (TileColumn c{0}; c.value() < layout_.tile_columns(); ++c) {
      for (TileRow i{0}; i.value() < layout_.tile_rows(); ++i) {
        result_.matrix.homes.push_back(distribution_.home(layout_, i, c));
      }
    }
    for (TileColumn c{0}; c.value() < layout_.tile_columns(); ++c) {
      factor_column(c);
      for (TileColumn right = c + 1; right.value() < layout_.tile_columns(); ++right) {
        update_column(c, right);
      }
      if (releases) release_column(c);
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] TileRow diagonal(TileColumn c) const { return layout_.diagonal_row(c); }

  [[nodiscard]] Access access(TileRow i, TileColumn c, AccessMode mode) const {
    return {{protocol::MatrixId{0}, c.value() * layout_.tile_rows() + i.value()},
            distribution_.home(layout_, i, c),
            mode};
  }

  void insert(Statement::Kind kind, std::int32_t priority, std::vector<Access> accesses) {
    result_.program.statements.push_back({kind, std::move(accesses), priority});
  }

  void factor_column(TileColumn c) {
    insert(Statement::Kind::task, 3, {access(diagonal(c), c, AccessMode::read_write)});
    for (TileRow i = diagonal(c) + 1; i.value() < layout_.tile_rows(); ++i) {
      insert(Statement::Kind::task, 2,
             {access(i, c, AccessMode::read_write), access(diagonal(c), c, AccessMode::read)});
    }
  }

  /// Subtracts the product of column c with those of its rows that face the column `right`.
  void update_column(TileColumn c, TileColumn right) {
    const TileRow facing = diagonal(right);
    for (TileRow i = facing; i.value() < layout_.tile_rows(); ++i) {
      std::vector<Access> accesses{access(i, right, AccessMode::read_write),
                                   access(i, c, AccessMode::read)};
      if (i != facing) accesses.push_back(access(facing, c, AccessMode::read));
      insert(Statement::Kind::task, right == c + 1 ? 1 : 0, std::move(accesses));
    }
  }

  void release_column(TileColumn c) {
    for (TileRow i = diagonal(c); i.value() < layout_.tile_rows(); ++i) {
      insert(Statement::Kind::release, 0, {access(i, c, AccessMode::read)});
    }
  }

  const TileLayout& layout_;
  const Distribution& distribution_;
  CholeskyProgram result_;
};

}  // namespace

CholeskyProgram cholesky_program(const TileLayout& layout, const Distribution& distribution,
                                 bool releases) {
  return CholeskyWriter(layout, distribution).write(releases);
}

std::int64_t cholesky_task_count(const TileLayout& layout) {
  std::int64_t count = 0;  // a tile of column c is written once by itself and by each column left
  for (TileColumn c{0}; c.value() < layout.tile_columns(); ++c) {
    count += std::int64_t{c.value() + 1} * (layout.end_row() - layout.diagonal_row(c));
  }
  return count;
}

}  // namespace heddle::simulation
