#include "base/id_table.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <unordered_map>

namespace heddle {
namespace {

/// The same in both, by number and all together.
void expect_alike(const IdTable<std::unique_ptr<int>>& table,
                  const std::unordered_map<std::int64_t, int>& reference) {
  ASSERT_EQ(table.size(), reference.size());
  std::size_t seen = 0;
  table.for_each([&](std::int64_t id, const std::unique_ptr<int>& value) {
    ++seen;
    ASSERT_TRUE(reference.contains(id));
    EXPECT_EQ(*value, reference.at(id));
    ASSERT_NE(table.find(id), nullptr) << id;
  });
  EXPECT_EQ(seen, reference.size());
}

TEST(IdTable, is_a_map_whatever_the_numbers) {
  for (const std::int64_t spread : {1, 64, 1024, 1 << 20}) {
    IdTable<std::unique_ptr<int>> table;
    std::unordered_map<std::int64_t, int> reference;
    std::mt19937_64 random(static_cast<std::uint64_t>(spread));
    for (int step = 0; step < 4000; ++step) {
      const std::int64_t id = spread * static_cast<std::int64_t>(random() % 150);
      const bool is_there = reference.contains(id);
      ASSERT_EQ(table.contains(id), is_there);
      switch (random() % 3) {
        case 0:
          ASSERT_EQ(table.erase(id), is_there);
          reference.erase(id);
          break;
        case 1:
          if (!is_there) break;
          ASSERT_EQ(*table.extract(id), reference.at(id));
          reference.erase(id);
          break;
        default:
          if (is_there) break;
          table.emplace(id, std::make_unique<int>(step));
          reference.emplace(id, step);
      }
      if (step % 50 == 0) expect_alike(table, reference);
    }
    expect_alike(table, reference);
    table.clear();
    EXPECT_TRUE(table.empty());
  }
}

TEST(IdTable, keeps_nothing_of_what_has_left) {
  IdTable<std::shared_ptr<int>> table;
  const auto value = std::make_shared<int>(1);
  for (std::int64_t id = 0; id < 40; ++id) table.emplace(64 * id, value);
  for (std::int64_t id = 0; id < 40; ++id) table.erase(64 * id);
  EXPECT_EQ(value.use_count(), 1);
}

TEST(IdTable, has_nothing_of_no_number) {
  IdTable<int> table;
  EXPECT_FALSE(table.contains(-1));
  EXPECT_FALSE(table.erase(-1));
  EXPECT_EQ(table.find(0), nullptr);
}

TEST(IdTableDeathTest, takes_a_number_once) {
  IdTable<int> table;
  table.emplace(5, 1);
  EXPECT_DEATH(table.emplace(5, 2), "5 is in the table already");
  EXPECT_DEATH(static_cast<void>(table.at(6)), "there is no 6");
}

}  // namespace
}  // namespace heddle
