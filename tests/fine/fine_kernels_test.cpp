#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cpu/blas.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/fine/fine_graph.hpp"
#include "tests/fine/cases.hpp"
#include "tests/kernels/guarded_tile.hpp"
#include "tests/support/seeds.hpp"

/// What the fine tasks of a kernel do together is what the kernel does, in whatever order they run.
namespace heddle::test {
namespace {

class LoadBlas : public ::testing::Environment {
 public:
  void SetUp() override { load_blas({.core_type = "", .tile_kernels = ""}); }
};
const auto* const load_blas_first = ::testing::AddGlobalTestEnvironment(new LoadBlas);

/// The tiles of a case, filled so that the kernel has something sensible to do.
class Tiles {
 public:
  Tiles(const FineCase& c, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (const OperandShape& shape : c.operands) {
      tiles_.push_back(std::make_unique<GuardedTile>(shape.rows, shape.columns));
      tiles_.back()->fill_random(random);
    }
    const auto offset = c.parameters.as<kernel::PieceParameters>().offset;
    if (c.kernel == &kernel::potrf) make_dominant(*tiles_[0], offset);
    if (c.kernel == &kernel::trsm) make_dominant(*tiles_[1], offset);
    for (const auto& tile : tiles_) views_.push_back(tile->view());
  }

  /// Makes tiles 2 and 3 the reflectors and T of a panel, as their kernel leaves them.
  void make_reflectors(const FineCase& c, const Kernel& maker) {
    const auto p = c.parameters.as<kernel::PanelParameters>();
    const std::int64_t w = c.operands[2].columns;
    GuardedTile r(p.row + w, w);
    if (&maker == &kernel::ttqrt) {
      std::mt19937_64 random(5);
      GuardedTile upper(p.row + w, w);
      GuardedTile lower(p.row + w, w);
      upper.fill_random(random);
      lower.fill_random(random);
      run(maker, p, {views_[2], r.view(), views_[3], upper.view(), lower.view()});
    } else {
      run(maker, p, {views_[2], r.view(), views_[3]});
    }
  }

  [[nodiscard]] const std::vector<TileView>& views() const { return views_; }
  [[nodiscard]] const GuardedTile& operator[](std::size_t i) const { return *tiles_[i]; }
  [[nodiscard]] std::size_t size() const { return tiles_.size(); }

 private:
  static void make_dominant(GuardedTile& tile, std::int64_t offset) {
    for (std::int64_t j = 0; j < tile.columns(); ++j) {
      tile(offset + j, j) = 2 + static_cast<double>(tile.columns());
    }
  }

  std::vector<std::unique_ptr<GuardedTile>> tiles_;
  std::vector<TileView> views_;
};

/// Those whose inputs are reflectors of a panel.
const Kernel* maker_of_inputs(const Kernel* k) {
  if (k == &kernel::unmqr || k == &kernel::unmqr_back) return &kernel::geqrt;
  if (k == &kernel::tsmqr || k == &kernel::tsmqr_back) return &kernel::tsqrt;
  if (k == &kernel::ttmqr || k == &kernel::ttmqr_back) return &kernel::ttqrt;
  return nullptr;
}

Tiles tiles_of(const FineCase& c) {
  Tiles tiles(c, 17);
  if (const Kernel* maker = maker_of_inputs(c.kernel)) tiles.make_reflectors(c, *maker);
  return tiles;
}

std::int64_t run_fine(const FineTask& task, const Tiles& tiles) {
  std::array<TileView, FineTask::accesses_max> views;
  for (std::size_t i = 0; i < task.operand_count; ++i) {
    const TileArea& a = task.operands[i].area;
    const TileView& tile = tiles.views()[a.tile];
    EXPECT_TRUE(a.row >= 0 && a.column >= 0 && a.row + a.rows <= tile.rows &&
                a.column + a.columns <= tile.columns)
        << "tile " << int{a.tile} << ": " << a.rows << "x" << a.columns << " at (" << a.row << ", "
        << a.column << ") of " << tile.rows << "x" << tile.columns;
    views[i] = tile.block(a.row, a.column, a.rows, a.columns);
  }
  const std::int64_t info =
      task.kernel->host({{views.data(), task.operand_count}, task.parameters});
  return info > 0 ? task.info_base + info : 0;
}

/// Runs all tasks of a graph, of the ready ones a random one first.
void run_in_random_order(const FineGraph& graph, const Tiles& tiles, std::mt19937_64& random) {
  std::vector<std::int32_t> missing(graph.missing().begin(), graph.missing().end());
  std::vector<std::int32_t> ready;
  for (std::int32_t t = 0; t < graph.size(); ++t) {
    if (missing[static_cast<std::size_t>(t)] == 0) ready.push_back(t);
  }
  std::int32_t count = 0;
  for (; !ready.empty(); ++count) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::int32_t task = ready.back();
    ready.pop_back();
    EXPECT_EQ(run_fine(graph.task(task), tiles), 0);
    for (const std::int32_t next : graph.successors(task)) {
      if (--missing[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
    }
  }
  EXPECT_EQ(count, graph.size()) << "the graph has a circle";
}

double largest_difference(const GuardedTile& a, const GuardedTile& b) {
  double largest = 0;
  for (std::int64_t j = 0; j < a.columns(); ++j) {
    for (std::int64_t i = 0; i < a.rows(); ++i) {
      const double difference = std::abs(a(i, j) - b(i, j));
      if (!(difference <= largest)) largest = difference;  // a NaN stays
    }
  }
  return largest;
}

constexpr std::int64_t scale = 45;
constexpr std::array<std::int64_t, 6> smalls{1, 8, 10, 16, 44, 100};

TEST(FineForm, OneAfterTheOtherTheTasksDoWhatTheKernelDoes) {
  for (const FineCase& c : fine_cases(scale)) {
    const Tiles whole = tiles_of(c);
    ASSERT_EQ(c.kernel->host({whole.views(), c.parameters}), 0) << c.name;
    for (const std::int64_t small : smalls) {
      SCOPED_TRACE(::testing::Message() << c.name << ", small " << small);
      const Tiles fine = tiles_of(c);
      const FineTasks tasks = fine_form(c.what(), small);
      for (const FineTask& task : tasks.tasks()) ASSERT_EQ(run_fine(task, fine), 0);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        // Rounding alone: sums are added up in another order.
        ASSERT_LE(largest_difference(fine[i], whole[i]), 1e-11) << "tile " << i;
      }
    }
  }
}

TEST(FineForm, GivesTheSameBitsInAnyOrderThatTheGraphAllows) {
  const std::vector<FineCase> cases = fine_cases(scale);
  for (const std::uint64_t seed : simulation::seeds(12)) {
    SCOPED_TRACE(simulation::replay_hint(seed));
    std::mt19937_64 random(seed);
    for (const FineCase& c : cases) {
      const std::int64_t small = smalls[random() % smalls.size()];
      if (small == 1 && random() % 8 != 0) continue;  // thousands of tasks
      SCOPED_TRACE(::testing::Message() << c.name << ", small " << small);
      const FineTasks tasks = fine_form(c.what(), small);
      const Tiles in_order = tiles_of(c);
      for (const FineTask& task : tasks.tasks()) ASSERT_EQ(run_fine(task, in_order), 0);
      const Tiles shuffled = tiles_of(c);
      run_in_random_order(FineGraph(tasks), shuffled, random);
      for (std::size_t i = 0; i < in_order.size(); ++i) {
        ASSERT_TRUE(shuffled[i].same_bits(in_order[i])) << "tile " << i;
      }
    }
  }
}

TEST(FineForm, AKernelWithoutOneHasNoTasks) {
  const Kernel none{"none"};
  const std::array<OperandShape, 1> shape{{{8, 8}}};
  EXPECT_TRUE(fine_form({&none, {}, shape}, 4).tasks().empty());
}

TEST(FineForm, OfATileThatIsSmallEnoughIsOneTask) {
  const std::array<OperandShape, 3> shapes{{{8, 8}, {8, 8}, {8, 8}}};
  EXPECT_EQ(fine_form({&kernel::gsmm, KernelParameters(kernel::UpdateParameters{}), shapes}, 8)
                .tasks()
                .size(),
            1U);
  EXPECT_EQ(fine_form({&kernel::gsmm, KernelParameters(kernel::UpdateParameters{}), shapes}, 7)
                .tasks()
                .size(),
            4U);
}

TEST(FineForm, SaysWhereTheMatrixIsNotPositiveDefiniteAsTheKernelDoes) {
  for (const std::int64_t bad : {0, 3, 15, 16, 40}) {
    FineCase c{&kernel::potrf, KernelParameters(kernel::PieceParameters{4}), {{53, 45}}, "potrf"};
    const Tiles whole(c, 3);
    const Tiles fine(c, 3);
    whole[0](4 + bad, bad) = fine[0](4 + bad, bad) = -1;
    const std::int64_t info = c.kernel->host({whole.views(), c.parameters});
    EXPECT_EQ(info, bad + 1);
    std::int64_t first = 0;
    const FineTasks tasks = fine_form(c.what(), 16);
    for (const FineTask& task : tasks.tasks()) {
      first = run_fine(task, fine);
      if (first != 0) break;
    }
    EXPECT_EQ(first, info);
  }
}

}  // namespace
}  // namespace heddle::test
