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

}  // namespace

Products make_products_for(const Matrix<double>& a, std::int64_t width) {
  const Distribution& d = a.distribution();
  const auto make = [&](Dealing dealing, std::int32_t devices) {
    const bool is_down = dealing == Dealing::cyclic;
    // Wide columns of `down` go round the nodes of a grid row and their devices, as those of A do.
    const std::int64_t slots = is_down ? d.grid_columns * std::max(1, devices) : d.grid_rows;
    MatrixSpec spec({.rows = is_down ? a.rows() : a.columns(),
                     .columns = width * slots,
                     .tile = is_down ? a.layout().tile : a.layout().wide_width(),
                     .wide = std::max<std::int64_t>(1, width)},
                    d);
    spec.distribution.devices = devices;
    spec.dealing = dealing;
    spec.temporary = true;
    return a.node().matrix<double>(spec);
  };
  Products products{make(Dealing::cyclic, d.devices), make(Dealing::transposed, d.devices)};
  if (d.devices > 0 && a.layout().strip > 0) {
    products.strips_down = make(Dealing::cyclic, 0);
    products.strips_across = make(Dealing::transposed, 0);
  }
  return products;
}

std::vector<Products> make_products(const Matrix<double>& a, const Matrix<double>& x) {
  std::vector<Products> all;
  for (TileColumn c{0}; c < x.layout().end_column(); ++c) {
    all.push_back(make_products_for(a, x.layout().column_count(c)));
  }
  return all;
}

Walk::Written::Written(const Matrix<double>& matrix)
    : tiles(matrix),
      counts(static_cast<std::size_t>(matrix.layout().tile_rows()) *
             static_cast<std::size_t>(matrix.layout().tile_columns())) {}

protocol::Access Walk::Written::after(TileRow row, TileColumn slot, std::int32_t writes) {
  const TileRef tile = tiles(row, slot);
  return read(tile, Version{counts[tile.id.position()] += writes});
}

std::optional<Walk::Written> Walk::written_of(const std::optional<Matrix<double>>& matrix) {
  if (!matrix) return std::nullopt;
  return Written(*matrix);
}

Walk::Walk(TaskStream& stream, const Matrix<double>& matrix, TileColumn side,
           const Products& temporaries, kernel::Term what)
    : tasks(stream),
      a(matrix),
      column(side),
      term(what),
      me(stream.node()),
      down_(temporaries.down),
      across_(temporaries.across),
      strips_down_(written_of(temporaries.strips_down)),
      strips_across_(written_of(temporaries.strips_across)) {}

TileProduct Walk::next_down(TileRow i, WideColumn j) {
  const Distribution& d = a.distribution();
  const TileColumn slot{j.value() % (d.grid_columns * std::max(1, d.devices))};
  return next(down_, strips_down_, i, slot, TileColumn{j.value() % d.grid_columns}, j);
}

TileProduct Walk::next_across(TileRow i, WideColumn j) {
  const TileColumn slot{i.value() % a.distribution().grid_rows};
  return next(across_, strips_across_, row_of(j), slot, slot, j);
}

TileProduct Walk::next(Written& products, std::optional<Written>& strips, TileRow row,
                       TileColumn slot, TileColumn strips_slot, WideColumn j) {
  const std::int32_t pieces = pieces_of(j);
  if (!strips) return {Broadcast(tasks, products.after(row, slot, pieces)), std::nullopt};
  const bool has_remainder = a.layout().is_remainder(end(j) - 1);
  const std::int32_t in_strip = pieces - (has_remainder ? 1 : 0);
  if (in_strip == 0) return {Broadcast(tasks, products.after(row, slot, 1)), std::nullopt};
  const protocol::Access on_host = strips->after(row, strips_slot, in_strip);
  if (!has_remainder) return {Broadcast(tasks, on_host), std::nullopt};
  // What the strip made is copied, and the remainder's product added.
  return {Broadcast(tasks, products.after(row, slot, 2)), on_host};
}

TaskStream::Room Walk::take_strips(const TileProduct& product, TileColumn c,
                                   std::int32_t priority) const {
  if (!product.strips() || !a.layout().is_remainder(c)) return tasks.room();
  TaskOptions options;
  options.priority = priority;
  const TileRef to{product.tile().tile, product.tile().home};
  return tasks.insert(kernel::copy, {write(to), *product.strips()}, options);
}

void Walk::release_strips(const TileProduct& product) const {
  if (product.strips()) tasks.release(*product.strips());
}

protocol::Access written(const Walk& w, const TileProduct& product, TileColumn c) {
  const bool is_in_strip = product.strips() && !w.a.layout().is_remainder(c);
  const protocol::Access& to = is_in_strip ? *product.strips() : product.tile();
  const TileRef tile{to.tile, to.home};
  return w.a.layout().piece_of(c) == 0 ? write(tile) : read_write(tile);
}

TaskOptions product_options(const Walk& w, TileColumn c, bool accumulate, std::int32_t priority) {
  TaskOptions options;
  options.parameters = KernelParameters(
      kernel::ProductParameters{w.a.layout().offset_in_wide(c), accumulate ? 1 : 0, w.term});
  options.priority = priority;
  return options;
}

JobSpec job_of(std::string name, std::vector<Matrix<double>> matrices,
               const std::vector<Products>& products, std::vector<MakeProgram> programs) {
  for (const Products& p : products) {
    matrices.insert(matrices.end(), {p.down, p.across});
    if (p.strips_down) matrices.insert(matrices.end(), {*p.strips_down, *p.strips_across});
  }
  return heddle::job_of(
      std::move(name), matrices,
      [programs = std::move(programs)](TaskStream& tasks) { return in_turn(tasks, programs); });
}

}  // namespace heddle::solve
