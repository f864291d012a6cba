#pragma once

#include "algorithms/walk/job.hpp"
#include "algorithms/walk/tile_walk.hpp"

/// A right-looking program that no algorithm of the product has: what a user could write with a
/// TileWalk.
namespace heddle::simulation {

inline std::int64_t compute_nothing(const KernelArguments& /*arguments*/) {
  return 0;
}
inline constexpr Kernel lu_factor{.name = "lu factor", .host = compute_nothing};
inline constexpr Kernel lu_left{.name = "lu left", .host = compute_nothing};
inline constexpr Kernel lu_right{.name = "lu right", .host = compute_nothing};
inline constexpr Kernel lu_update{.name = "lu update", .host = compute_nothing};

/// LU without pivoting on square tiles, all of them stored: a column of L and a row of U in each
/// step, which are read by the rows and by the columns behind them.
inline heddle::Program lu_program(TaskStream& tasks, Matrix<double> a) {
  const TileLayout layout = a.layout();
  TileWalk walk(tasks, a);
  for (TileColumn c{0}; c < layout.end_column(); ++c) {
    const TileRow k = layout.diagonal_row(c);
    const TileRange left = walk.column(c, k + 1);
    const TileRange right = TileWalk::row_of(walk.trailing(k, c + 1), k);
    const TileRange trailing = walk.trailing(k + 1, c + 1);
    for (const auto task : walk.over(TileWalk::tile(k, c))) {
      co_await task.insert(lu_factor, {read_write(a(k, c))});
    }
    walk.broadcast(a(k, c), {left, right});
    for (const auto task : walk.over(left)) {
      co_await task.insert(lu_left, {read_write(a(task.row, c)), read(a(k, c))});
    }
    for (const auto task : walk.over(right)) {
      co_await task.insert(lu_right, {read_write(a(k, task.column)), read(a(k, c))});
    }
    for (TileRow i = k + 1; i < layout.end_row(); ++i) {
      walk.broadcast(a(i, c), {TileWalk::row_of(trailing, i)});
    }
    for (TileColumn d = c + 1; d < layout.end_column(); ++d) {
      walk.broadcast(a(k, d), {walk.column(d, k + 1)});
    }
    for (const auto task : walk.over(trailing)) {
      co_await task.insert(lu_update, {read_write(a(task.row, task.column)), read(a(task.row, c)),
                                       read(a(k, task.column))});
    }
  }
}

[[nodiscard]] inline JobSpec lu(const Matrix<double>& a) {
  return job_of("lu", {a}, [a](TaskStream& tasks) { return lu_program(tasks, a); });
}

}  // namespace heddle::simulation
