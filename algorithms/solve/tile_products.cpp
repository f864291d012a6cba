#include "algorithms/solve/tile_products.hpp"

#include <algorithm>
#include <utility>

#include "algorithms/walk/job.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle::solve {
namespace {

Program in_turn(TaskStream& tasks, std::vector<MakeProgram> programs) {
  for (const auto& make : programs) {
    Program part = make(tasks);
    while (part.resume()) co_await tasks.room();
  }
}

std::size_t tile_count(const Matrix<double>& m) {
  return static_cast<std::size_t>(m.layout().tile_rows()) *
         static_cast<std::size_t>(m.layout().tile_columns());
}

}  // namespace

Products make_products_for(const Matrix<double>& a, std::int64_t width) {
  const Distribution& d = a.distribution();
  MatrixSpec spec({.rows = a.rows(),
                   .columns = width * d.grid_columns,
                   .tile = a.layout().tile,
                   .wide = std::max<std::int64_t>(1, width)},
                  d);
  spec.distribution.devices = 0;
  spec.temporary = true;
  Matrix<double> down = a.node().matrix<double>(spec);
  spec.layout.rows = a.columns();
  spec.layout.columns = width * d.grid_rows;
  spec.layout.tile = a.layout().wide_width();
  spec.dealing = Dealing::transposed;
  return {std::move(down), a.node().matrix<double>(spec)};
}

std::vector<Products> make_products(const Matrix<double>& a, const Matrix<double>& x) {
  std::vector<Products> all;
  for (TileColumn c{0}; c < x.layout().end_column(); ++c) {
    all.push_back(make_products_for(a, x.layout().column_count(c)));
  }
  return all;
}

Walk::Walk(TaskStream& stream, const Matrix<double>& matrix, TileColumn side,
           const Products& temporaries)
    : tasks(stream),
      a(matrix),
      column(side),
      me(stream.node()),
      products_(temporaries),
      down_writes_(tile_count(products_.down), 0),
      across_writes_(tile_count(products_.across), 0) {}

Broadcast Walk::next_down(TileRow i, WideColumn j) {
  const std::int32_t slot = j.value() % a.distribution().grid_columns;
  return next(products_.down, down_writes_, i, TileColumn{slot}, j);
}

Broadcast Walk::next_across(TileRow i, WideColumn j) {
  const std::int32_t slot = i.value() % a.distribution().grid_rows;
  return next(products_.across, across_writes_, row_of(j), TileColumn{slot}, j);
}

Broadcast Walk::next(const Matrix<double>& products, std::vector<std::int32_t>& writes, TileRow row,
                     TileColumn slot, WideColumn j) {
  const TileRef tile = products(row, slot);
  std::int32_t& count = writes[static_cast<std::size_t>(tile.id.index)];
  count += pieces_of(j);
  return {tasks, read(tile, Version{count})};
}

protocol::Access written(const Walk& w, const Broadcast& product, TileColumn c) {
  const TileRef tile{product.tile().tile, product.tile().home};
  return w.a.layout().piece_of(c) == 0 ? write(tile) : read_write(tile);
}

TaskOptions product_options(const Walk& w, TileColumn c, bool accumulate, std::int32_t priority) {
  TaskOptions options;
  options.parameters = KernelParameters(
      kernel::ProductParameters{w.a.layout().offset_in_wide(c), accumulate ? 1 : 0});
  options.priority = priority;
  return options;
}

JobSpec job_of(std::string name, std::vector<Matrix<double>> matrices,
               const std::vector<Products>& products, std::vector<MakeProgram> programs) {
  for (const Products& p : products) matrices.insert(matrices.end(), {p.down, p.across});
  return heddle::job_of(
      std::move(name), matrices,
      [programs = std::move(programs)](TaskStream& tasks) { return in_turn(tasks, programs); });
}

}  // namespace heddle::solve
