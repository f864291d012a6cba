#include "node-runtime/protocol/version_table.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace heddle::protocol {
namespace {

constexpr JobId job{0};
constexpr JobId next_job{1};
constexpr PlaceId device{1};

class VersionTableTest : public testing::Test {
 protected:
  VersionTableTest() {
    MatrixOptions own;
    own.tile_count = 3;
    own.pools = {10, 11};
    own.classes = std::make_shared<const std::vector<std::int32_t>>(std::vector{0, 1, 0});
    own.class_count = 2;
    own.spare_count = 1;
    matrix_ = versions_.add_matrix(own);
    MatrixOptions temporary;
    temporary.tile_count = 2;
    temporary.temporary = true;
    temporary_ = versions_.add_matrix(temporary);
  }
  ~VersionTableTest() override { versions_.abandon(); }

  static Access access(MatrixId matrix, std::int32_t tile, PlaceId place = host_place) {
    return {{matrix, tile}, {NodeId{0}, place}, AccessMode::read_write};
  }
  /// A version that the next write may replace.
  static void finish(LocalVersion& version) { version.present = version.closed = true; }

  VersionTable versions_{2};
  MatrixId matrix_;
  MatrixId temporary_;
};

}  // namespace

TEST_F(VersionTableTest, untouched_tile_has_its_initial_content_in_its_own_block) {
  const LocalVersion& version = versions_.current(access(matrix_, 2, device));
  EXPECT_TRUE(version.present);
  EXPECT_EQ(version.block, (BlockRef{11, 2}));
  EXPECT_EQ(version.number_in(job), Version{0});
  EXPECT_EQ(versions_.current_block({matrix_, 1}, host_place), (BlockRef{10, 1}));
}

TEST_F(VersionTableTest, counts_writes_by_job) {
  const Access tile = access(matrix_, 0);
  versions_.current(tile).closed = true;
  LocalVersion& first = versions_.add_version(tile, job);
  finish(first);
  LocalVersion& second = versions_.add_version(tile, job);
  EXPECT_EQ(first.number, Version{1});
  EXPECT_EQ(second.number_in(job), Version{2});
  EXPECT_EQ(second.number_in(next_job), Version{0});
  EXPECT_EQ(second.previous, &first);
  EXPECT_TRUE(versions_.is_valid());
  finish(second);
  EXPECT_EQ(versions_.add_version(tile, next_job).number, Version{1});
  EXPECT_TRUE(versions_.is_valid());
}

TEST_F(VersionTableTest, open_version_behind_another_is_invalid) {
  const Access tile = access(matrix_, 0);
  LocalVersion& initial = versions_.current(tile);
  static_cast<void>(versions_.add_version(tile, job));
  EXPECT_FALSE(versions_.is_valid());
  initial.closed = true;
  EXPECT_TRUE(versions_.is_valid());
  initial.actual = 1;
  EXPECT_FALSE(versions_.is_valid());
  initial.actual = 0;
}

TEST_F(VersionTableTest, renames_within_the_class_of_a_tile_while_a_spare_block_is_free) {
  const Access tile = access(matrix_, 1);
  LocalVersion& old = versions_.current(tile);
  finish(old);
  LocalVersion& renamed = versions_.add_version(tile, job);
  ASSERT_TRUE(versions_.take_spare_block(renamed));
  EXPECT_EQ(renamed.block, (BlockRef{10, 4}));  // after 3 tiles and the spare block of class 0
  EXPECT_TRUE(old.superseded);
  EXPECT_EQ(versions_.renamings(), 1);
  finish(renamed);
  LocalVersion& again = versions_.add_version(tile, job);
  EXPECT_FALSE(versions_.take_spare_block(again));
  versions_.give_back_spare_block(renamed);
  EXPECT_TRUE(versions_.take_spare_block(again));
  EXPECT_EQ(versions_.current_block({matrix_, 1}, host_place), (BlockRef{10, 4}));
}

TEST_F(VersionTableTest, write_takes_the_block_of_the_version_it_replaces) {
  const Access tile = access(matrix_, 0);
  finish(versions_.current(tile));
  LocalVersion& version = versions_.add_version(tile, job);
  EXPECT_FALSE(version.block.valid());
  versions_.take_block_of_previous(version);
  EXPECT_EQ(version.block, (BlockRef{10, 0}));
  EXPECT_EQ(version.previous, nullptr);
  EXPECT_TRUE(versions_.is_valid());
}

TEST_F(VersionTableTest, temporary_tile_begins_anew_after_it_is_forgotten) {
  const Access tile = access(temporary_, 1);
  LocalVersion& first = versions_.add_version(tile, job);
  EXPECT_TRUE(first.temporary);
  EXPECT_EQ(first.previous, nullptr);
  std::vector<LocalVersion*> forgotten;
  versions_.forget_temporaries(next_job, [&](LocalVersion& v) { forgotten.push_back(&v); });
  EXPECT_TRUE(forgotten.empty());
  versions_.forget_temporaries(job, [&](LocalVersion& v) { forgotten.push_back(&v); });
  EXPECT_EQ(forgotten, std::vector{&first});
  EXPECT_EQ(versions_.find_current(tile.tile), nullptr);
  const LocalVersion& second = versions_.add_version(tile, job);
  EXPECT_EQ(second.previous, nullptr);
  EXPECT_EQ(second.number, Version{2});
  versions_.destroy(first);
}

TEST_F(VersionTableTest, counts_writes_to_tiles_of_other_nodes_unless_the_program_states_them) {
  Access tile = access(matrix_, 0);
  tile.home.node = NodeId{1};
  EXPECT_EQ(versions_.count_remote_write(tile, job), Version{0});
  EXPECT_EQ(versions_.count_remote_write(tile, job), Version{1});
  EXPECT_EQ(versions_.remote_version(tile, job), Version{2});
  EXPECT_EQ(versions_.remote_version(tile, next_job), Version{0});
  tile.version = Version{7};
  EXPECT_EQ(versions_.count_remote_write(tile, job), Version{7});
  EXPECT_EQ(versions_.remote_version(tile, job), Version{7});
}

}  // namespace heddle::protocol
