#include "algorithms/checks/again.hpp"

#include "algorithms/io/agreement.hpp"
#include "algorithms/walk/job.hpp"
#include "base/require.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {
namespace {

Program copy_own(TaskStream& tasks, Matrix<double> to, Matrix<double> from) {
  const TileLayout& layout = to.layout();
  for (TileColumn c{0}; c < layout.end_column(); ++c) {
    for (TileRow i{0}; i < layout.end_row(); ++i) {
      if (!to.stores(i, c) || to.home(i, c).node != tasks.node()) continue;
      co_await tasks.insert(kernel::copy, {write(to(i, c)), read(from(i, c), Version{0})});
    }
  }
}

}  // namespace

JobSpec copy_tiles(const Matrix<double>& to, const Matrix<double>& from) {
  require(to.layout() == from.layout() && to.distribution() == from.distribution() &&
              to.storage() == from.storage(),
          "copy_tiles: the matrices are {} x {} in tiles of {} and {} x {} in tiles of {}; they "
          "must be alike in layout, distribution and storage",
          to.rows(), to.columns(), to.layout().tile, from.rows(), from.columns(),
          from.layout().tile);
  return heddle::job_of("copy", {to, from},
                        [to, from](TaskStream& tasks) { return copy_own(tasks, to, from); });
}

JobSpec Again::symmetric_job(const std::vector<Product>& products, const SetPart& set) const {
  return subtract_symmetric_products(operand(set), products);
}

JobSpec Again::job(const std::vector<Product>& products, const std::vector<Product>& back,
                   const SetPart& set) const {
  return subtract_products(operand(set), products, back);
}

void Again::run(Node& node, const std::function<JobSpec(const SetPart& set)>& make) const {
  const auto run = [&](const SetPart& set) { run_job(node, make(set)); };
  if (!a_.tiles.spec().temporary || a_.generated) return run({});
  set_together(
      node,
      [source = source_](GlobalRow row, GlobalColumn column, TileView part) {
        source->read(row, column, part);
      },
      run, [this] { source_->check_unchanged(); });
}

}  // namespace heddle
