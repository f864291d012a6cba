#include "node-runtime/memory/stored_matrices.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace heddle {
namespace {

using protocol::MatrixId;

std::unique_ptr<StoredMatrix> matrix_of(std::int32_t tiles) {
  auto matrix = std::make_unique<StoredMatrix>();
  const auto count = static_cast<std::size_t>(tiles);
  matrix->table.shapes.assign(count, {2, 2});
  matrix->table.home_places.assign(count, host_place);
  matrix->table.is_local.assign(count, true);
  return matrix;
}

}  // namespace

TEST(StoredMatrices, find_what_was_put_in_until_it_is_taken) {
  StoredMatrices matrices;
  EXPECT_EQ(matrices.find(MatrixId{0}), nullptr);
  for (const std::int32_t id : {0, 1, 1023, 1024, 70'000}) {
    matrices.put(MatrixId{id}, matrix_of(id % 7));
    ASSERT_TRUE(matrices.is_valid()) << id;
  }
  EXPECT_EQ(matrices.count(), 5U);
  EXPECT_EQ(matrices.at(MatrixId{1024}).table.shapes.size(), 1024U % 7);
  EXPECT_EQ(matrices.find(MatrixId{2}), nullptr) << "of a chunk that exists";
  EXPECT_EQ(matrices.find(MatrixId{5000}), nullptr) << "of one that does not";
  const std::unique_ptr<StoredMatrix> taken = matrices.take(MatrixId{1023});
  EXPECT_EQ(taken->table.shapes.size(), 1023U % 7);
  EXPECT_EQ(matrices.find(MatrixId{1023}), nullptr);
  EXPECT_EQ(matrices.count(), 4U);
  EXPECT_TRUE(matrices.is_valid());
}

TEST(StoredMatrices, refuse_an_id_beyond_all_that_there_may_be) {
  constexpr auto first_too_many = static_cast<std::int32_t>(StoredMatrices::ids_max);
  StoredMatrices matrices;
  matrices.put(MatrixId{first_too_many - 1}, matrix_of(1));
  EXPECT_THROW(matrices.put(MatrixId{first_too_many}, matrix_of(1)), Error);
  EXPECT_EQ(matrices.find(MatrixId{first_too_many}), nullptr);
  EXPECT_TRUE(matrices.is_valid());
}

TEST(StoredMatrices, show_each_matrix_once) {
  StoredMatrices matrices;
  for (const std::int32_t id : {3, 2000, 9}) matrices.put(MatrixId{id}, matrix_of(id));
  std::size_t tiles = 0;
  matrices.for_each([&](const StoredMatrix& matrix) { tiles += matrix.table.shapes.size(); });
  EXPECT_EQ(tiles, 2012U);
}

}  // namespace heddle
