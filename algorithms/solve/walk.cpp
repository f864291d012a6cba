#include "algorithms/solve/walk.hpp"

#include <algorithm>

#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"

namespace heddle::solve {
namespace {

/// One program after the other, for the wide columns of the right-hand sides.
Program in_turn(TaskStream& tasks, std::vector<MakeProgram> programs) {
  for (const auto& make : programs) {
    Program part = make(tasks);
    while (part.resume()) co_await tasks.room();
  }
}

}  // namespace

Products make_products_for(const Matrix<double>& a, std::int64_t width) {
  const Distribution& d = a.distribution();
  MatrixSpec spec;
  spec.rows = a.rows();
  spec.has_layout = true;
  spec.distribution = d;
  spec.distribution.devices = 0;
  spec.layout = {.tile = a.layout().tile, .wide = std::max<std::int64_t>(1, width)};
  spec.temporary = true;
  spec.columns = width * d.grid_columns;
  Matrix<double> down = a.node().matrix<double>(spec);
  spec.rows = a.columns();
  spec.columns = width * d.grid_rows;
  spec.layout.tile = a.layout().wide_width();
  spec.dealing = Dealing::transposed;
  return {std::move(down), a.node().matrix<double>(spec)};
}

std::vector<Products> make_products(const Matrix<double>& a, const Matrix<double>& x) {
  std::vector<Products> all;
  for (TileColumn c{0}; c.value() < x.layout().tile_columns(); ++c) {
    all.push_back(make_products_for(a, x.layout().column_count(c)));
  }
  return all;
}

TaskOptions product_options(const Walk& w, std::int32_t piece, bool accumulate,
                            std::int32_t priority) {
  TaskOptions options;
  options.parameters = KernelParameters(kernel::ProductParameters{
      w.a.layout().offset_in_wide(TileColumn{piece}), accumulate ? 1 : 0});
  options.priority = priority;
  return options;
}

JobSpec job_of(std::string name, std::vector<Matrix<double>> matrices,
               const std::vector<Products>& products, std::vector<MakeProgram> programs) {
  JobSpec spec;
  spec.name = std::move(name);
  for (const Products& p : products) {
    for (const Matrix<double>& m : {p.down, p.across}) {
      matrices.push_back(m);
      spec.temporaries.push_back(m.id());
    }
  }
  for (const Matrix<double>& m : matrices) {
    spec.matrices.push_back(m.id());
    spec.keep_alive.push_back(m.state());
  }
  spec.program = [programs = std::move(programs)](TaskStream& tasks) {
    return in_turn(tasks, programs);
  };
  return spec;
}

}  // namespace heddle::solve
