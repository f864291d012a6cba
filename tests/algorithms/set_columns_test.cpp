#include <atomic>
#include <chrono>
#include <condition_variable>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

constexpr std::int64_t order = 1700;

double element(std::int64_t i, std::int64_t j) {
  return static_cast<double>(i * 3001 + j);
}

/// Tiles of 1000 have 7.6 MiB, more than passes at a time.
Config configuration(const char* devices) {
  return Config::from_text(std::string("runtime: {cpu_workers: 2, devices: {") + devices +
                               "}}\nlayout: {tile: 1000, strip: 0}\n",
                           "set_columns test");
}

class SetColumns : public testing::TestWithParam<const char*> {};

std::int64_t differences(Matrix<double>& a) {
  std::atomic<std::int64_t> count{0};
  a.for_each_tile([&, layout = a.layout()](TileRow i, TileColumn c, TileView tile) {
    for (std::int64_t q = 0; q < tile.columns; ++q) {
      for (std::int64_t p = 0; p < tile.rows; ++p) {
        const double wanted = element(layout.row_begin(i) + p, layout.column_begin(c) + q);
        if (tile(p, q) != wanted) count.fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
  return count.load(std::memory_order_relaxed);
}

}  // namespace

TEST_P(SetColumns, give_each_element_once_with_its_place_in_the_matrix) {
  Node node(configuration(GetParam()));
  Matrix<double> a = node.matrix<double>(order, order + 3);
  std::vector<int> visits(static_cast<std::size_t>(order * (order + 3)), 0);
  std::mutex mutex;
  a.set_columns([&](GlobalRow row, GlobalColumn column, TileView part) {
    const std::lock_guard lock(mutex);
    for (std::int64_t q = 0; q < part.columns; ++q) {
      for (std::int64_t p = 0; p < part.rows; ++p) {
        const std::int64_t i = row.value() + p;
        const std::int64_t j = column.value() + q;
        part(p, q) = element(i, j);
        ++visits[static_cast<std::size_t>(i + j * order)];
      }
    }
  });
  EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
  EXPECT_EQ(differences(a), 0);

  a.fill([](std::int64_t i, std::int64_t j) { return -element(i, j); });
  EXPECT_EQ(differences(a), order * (order + 3) - 1) << "all but (0, 0)";
  a.fill(element);
  EXPECT_EQ(differences(a), 0);
}

TEST_P(SetColumns, are_read_once_and_in_order) {
  Node node(configuration(GetParam()));
  Matrix<double> a = node.matrix<double>(order, order + 3);
  a.fill(element);
  std::mutex mutex;
  std::int64_t wrong = 0;
  std::map<std::pair<TileRow, TileColumn>, std::int64_t> next;
  const auto look = [&, layout = a.layout()](TileRow i, TileColumn c, std::int64_t first,
                                             TileView part) {
    const std::lock_guard lock(mutex);
    std::int64_t& expected = next[{i, c}];
    EXPECT_EQ(first, expected);
    expected = first + part.columns;
    for (std::int64_t q = 0; q < part.columns; ++q) {
      for (std::int64_t p = 0; p < part.rows; ++p) {
        const std::int64_t column = layout.column_begin(c) + first + q;
        if (part(p, q) != element(layout.row_begin(i) + p, column)) ++wrong;
      }
    }
  };
  a.read_columns(look);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(next.size(), 4U);
  for (const auto& [tile, end] : next) {
    EXPECT_EQ(end, a.layout().column_count(tile.second)) << "all columns";
  }
  next.clear();
  a.read_columns(look, [](TileRow i, TileColumn) { return i == TileRow{1}; });
  EXPECT_EQ(next.size(), 2U) << "the chosen tiles alone";
  EXPECT_EQ(wrong, 0);
  EXPECT_THROW(a.read_columns([](TileRow, TileColumn, std::int64_t first, TileView) {
    if (first == 0) throw std::runtime_error("no more");
  }),
               std::runtime_error);
}

TEST_P(SetColumns, pass_what_a_visit_throws_to_the_caller_and_go_on_afterwards) {
  Node node(configuration(GetParam()));
  Matrix<double> a = node.matrix<double>(order, order);
  EXPECT_THROW(a.set_columns([](GlobalRow, GlobalColumn column, TileView) {
    if (column.value() > 0) throw std::runtime_error("no more");
  }),
               std::runtime_error);
  a.fill(element);
  EXPECT_EQ(differences(a), 0);
}

INSTANTIATE_TEST_SUITE_P(all, SetColumns,
                         testing::Values("backend: none",
                                         "backend: emulated, per_node: 2, memory: 256MiB",
                                         "backend: emulated, per_node: 1, memory: 256MiB"));

TEST(SetColumnsOnDevices, of_one_tile_are_set_by_several_workers) {
  Node node(
      Config::from_text("runtime: {cpu_workers: 3, devices: {backend: emulated, per_node: 1, "
                        "memory: 256MiB}}\nlayout: {tile: 1700, strip: 0}\n",
                        "set_columns test"));
  Matrix<double> a = node.matrix<double>(order, order);
  ASSERT_EQ(a.layout().tile_columns(), 1);
  std::mutex mutex;
  std::condition_variable second;
  std::set<std::thread::id> threads;
  a.set_columns([&](GlobalRow, GlobalColumn column, TileView part) {
    for (std::int64_t q = 0; q < part.columns; ++q) {
      for (std::int64_t p = 0; p < part.rows; ++p) part(p, q) = element(p, column.value() + q);
    }
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    second.notify_all();
    EXPECT_TRUE(second.wait_for(lock, std::chrono::seconds(30), [&] { return threads.size() > 1; }))
        << "nobody helps";
  });
  EXPECT_GT(threads.size(), 1U);
  EXPECT_EQ(differences(a), 0);
  // A range that throws, whoever has it, is the caller's error, and nobody is left in the tile.
  EXPECT_THROW(a.set_columns([](GlobalRow, GlobalColumn column, TileView) {
    if (column.value() > 1000) throw std::runtime_error("no more");
  }),
               std::runtime_error);
  a.fill(element);
  EXPECT_EQ(differences(a), 0);
}

TEST(SetColumnsOnDevices, pass_in_pieces) {
  Node node(configuration("backend: emulated, per_node: 1, memory: 256MiB"));
  Matrix<double> a = node.matrix<double>(order, order);
  std::atomic<std::int64_t> most{0};
  std::atomic<int> pieces{0};
  a.set_columns([&](GlobalRow, GlobalColumn, TileView part) {
    pieces.fetch_add(1, std::memory_order_relaxed);
    std::int64_t before = most.load(std::memory_order_relaxed);
    const std::int64_t bytes = part.rows * part.columns * 8;
    while (before < bytes &&
           !most.compare_exchange_weak(before, bytes, std::memory_order_relaxed)) {
    }
  });
  EXPECT_LE(most.load(std::memory_order_relaxed), std::int64_t{4} << 20);
  EXPECT_EQ(pieces.load(std::memory_order_relaxed), 2 + 2 + 2 + 1);
}

}  // namespace heddle
