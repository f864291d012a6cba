#include "algorithms/matrix/npy_writer.hpp"

#include <csignal>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "algorithms/matrix/generators.hpp"
#include "algorithms/matrix/npy_file.hpp"
#include "tests/matrix/files.hpp"

namespace heddle {

namespace {

using testing::expect_error;
using testing::OrdinaryUser;
using testing::TemporaryFolder;

std::unique_ptr<MatrixSource> random_matrix(std::int64_t rows, std::int64_t columns) {
  return make_generator({.kind = GeneratorKind::random, .n = columns, .m = rows});
}

/// Writes the tiles of `source` that `writer_number` of `writers` owns, with gaps between columns.
void write_tiles(const NpyWriter& writer, const MatrixSource& source, const TileLayout& layout,
                 std::int32_t writer_number, std::int32_t writers) {
  std::int32_t number = 0;
  for (std::int32_t i = 0; i < layout.tile_rows(); ++i) {
    for (std::int32_t c = 0; c < layout.tile_columns(); ++c) {
      if (number++ % writers != writer_number) continue;
      const std::int64_t row = layout.row_begin(TileRow{i});
      const std::int64_t column = layout.column_begin(TileColumn{c});
      auto block = testing::read_block(source, row, column, layout.row_count(TileRow{i}),
                                       layout.column_count(TileColumn{c}));
      writer.write(GlobalRow{row}, GlobalColumn{column}, block.view());
    }
  }
}

void expect_same(const std::string& path, const MatrixSource& source) {
  const NpySource written(path);
  ASSERT_EQ(written.rows(), source.rows());
  ASSERT_EQ(written.columns(), source.columns());
  const auto expected = testing::read_all(source);
  const auto found = testing::read_all(written);
  for (std::int64_t j = 0; j < source.columns(); ++j) {
    for (std::int64_t i = 0; i < source.rows(); ++i) ASSERT_EQ(found(i, j), expected(i, j));
  }
}

}  // namespace

TEST(NpyWriter, writes_the_header_that_numpy_writes) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  auto writer = NpyWriter::create(path, 2, 3, "run1");
  writer.commit();
  const std::string content = testing::read_file(path);
  EXPECT_EQ(content.size(), 128U + 48U);
  EXPECT_EQ(content.substr(0, 10), std::string("\x93NUMPY\1\0\x76\0", 10));
  EXPECT_EQ(content.substr(10, 59), "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), } ");
  EXPECT_EQ(content[127], '\n');
}

TEST(NpyWriter, several_writers_together_make_the_whole_file) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  const auto source = random_matrix(53, 31);
  const TileLayout layout{.rows = 53, .columns = 31, .tile = 8, .strip = 4, .small = 2};
  constexpr std::int32_t writers = 4;
  auto creator = NpyWriter::create(path, 53, 31, "run1");
  EXPECT_EQ(creator.temporary_path(), NpyWriter::temporary_path_of(path, "run1"));
  std::vector<std::thread> threads;
  for (std::int32_t number = 1; number < writers; ++number) {
    threads.emplace_back([&, number] {
      const auto writer = NpyWriter::open(creator.temporary_path(), 53, 31);
      write_tiles(writer, *source, layout, number, writers);
      writer.flush();
    });
  }
  write_tiles(creator, *source, layout, 0, writers);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(std::filesystem::exists(path));
  creator.commit();
  expect_same(path, *source);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x.npy"});
}

TEST(NpyWriter, writes_whole_columns_in_batches) {
  const TemporaryFolder folder;
  const auto source = random_matrix(3, 1000);
  for (const bool packed : {false, true}) {
    const std::string path = folder / "x.npy";
    auto writer = NpyWriter::create(path, 3, 1000, "run1");
    std::vector<double> elements(3000);
    const TileView view{elements.data(), 3, 1000, 3};
    source->read(GlobalRow{0}, GlobalColumn{0}, view);
    auto block = testing::read_all(*source);
    writer.write(GlobalRow{0}, GlobalColumn{0}, packed ? view : block.view());
    writer.commit();
    expect_same(path, *source);
  }
}

TEST(NpyWriter, writes_vectors_and_empty_matrices) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  std::vector<double> values{1.0, 2.0, 3.0};
  auto writer = NpyWriter::create(path, 3, 1, "a", NpyShape::vector);
  writer.write(GlobalRow{1}, GlobalColumn{0}, {&values[1], 2, 1, 2});
  writer.write(GlobalRow{0}, GlobalColumn{0}, {&values[0], 1, 1, 1});
  writer.commit();
  const NpySource vector(path, OneDimensional::as_column);
  EXPECT_TRUE(vector.is_vector());
  EXPECT_EQ(testing::read_all(vector)(2, 0), 3.0);
  auto empty = NpyWriter::create(path, 0, 0, "a");
  empty.write(GlobalRow{0}, GlobalColumn{0}, {});
  empty.commit();
  EXPECT_EQ(NpySource(path).rows(), 0);
}

TEST(NpyWriter, that_never_commits_leaves_nothing_and_an_older_file_as_it_was) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", "old");
  {
    auto writer = NpyWriter::create(path, 10, 10, "run1");
    EXPECT_EQ(folder.names().size(), 2U);
    const auto moved = std::move(writer);
    EXPECT_EQ(folder.names().size(), 2U);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x.npy"});
  EXPECT_EQ(testing::read_file(path), "old");
}

TEST(NpyWriter, survivors_can_remove_the_file_of_a_lost_creator) {
  const TemporaryFolder folder;
  std::optional<NpyWriter> creator(NpyWriter::create(folder / "x.npy", 4, 4, "run1"));
  auto survivor = NpyWriter::open(creator->temporary_path(), 4, 4);
  { const auto other = NpyWriter::open(creator->temporary_path(), 4, 4); }
  EXPECT_EQ(folder.names().size(), 1U);
  survivor.abandon();
  EXPECT_TRUE(folder.names().empty());
  creator.reset();
  EXPECT_TRUE(folder.names().empty());
}

TEST(NpyWriter, refuses_a_temporary_file_that_is_there_or_does_not_fit) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  const auto writer = NpyWriter::create(path, 4, 4, "run1");
  expect_error(ErrorCode::usage, {"x.npy.run1.heddle-part", "already", "remove it"},
               [&] { static_cast<void>(NpyWriter::create(path, 4, 4, "run1")); });
  EXPECT_EQ(folder.names().size(), 1U);
  const auto other = NpyWriter::create(path, 4, 4, "run2");
  expect_error(ErrorCode::internal, {"same folder"},
               [&] { static_cast<void>(NpyWriter::open(folder / "y.npy", 4, 4)); });
  expect_error(ErrorCode::internal, {"256 bytes", "168"},
               [&] { static_cast<void>(NpyWriter::open(writer.temporary_path(), 5, 1)); });
}

TEST(NpyWriter, finds_a_full_disk_when_it_creates_the_file) {
  const TemporaryFolder folder;
  const std::int64_t n = std::int64_t{1} << 26;  // 32 PiB
  expect_error(ErrorCode::usage, {"x.npy"},
               [&] { static_cast<void>(NpyWriter::create(folder / "x.npy", n, n, "run1")); });
  EXPECT_TRUE(folder.names().empty());
  expect_error(ErrorCode::usage, {"too large for any file"}, [&] {
    static_cast<void>(NpyWriter::create(folder / "x.npy", n << 20, n << 20, "run1"));
  });
}

TEST(NpyWriter, finds_a_limit_of_the_file_size_when_it_creates_the_file) {
  const TemporaryFolder folder;
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit limited = before;
  limited.rlim_cur = 65536;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  expect_error(ErrorCode::usage, {"x.npy", "reserving"},
               [&] { static_cast<void>(NpyWriter::create(folder / "x.npy", 100, 100, "run1")); });
  auto small = NpyWriter::create(folder / "y.npy", 10, 10, "run1");
  small.commit();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"y.npy"});
}

TEST(NpyWriter, says_when_the_system_takes_no_more_data) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  auto writer = NpyWriter::create(path, 4, 4, "run1");
  std::vector<double> values(16);
  // Past the limit the system refuses, as it does when a disk without reservations is full.
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit limited = before;
  limited.rlim_cur = 128 + 32;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  expect_error(ErrorCode::usage, {writer.temporary_path(), "writing at byte"}, [&] {
    writer.write(GlobalRow{0}, GlobalColumn{0}, {values.data(), 4, 4, 4});
  });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, previous);
}

TEST(NpyWriter, keeps_a_link_and_the_mode_of_the_file_that_it_leads_to) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "far");
  ASSERT_EQ(::chmod(folder.write("far/x.npy", "old").c_str(), 0640), 0);
  std::filesystem::create_symlink("far/x.npy", folder / "x.npy");
  auto writer = NpyWriter::create(folder / "x.npy", 2, 2, "run1");
  EXPECT_EQ(writer.temporary_path(), folder / "far/x.npy.run1.heddle-part");
  writer.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "x.npy"));
  EXPECT_EQ(NpySource(folder / "far/x.npy").rows(), 2);
  struct stat file {};
  ASSERT_EQ(::stat((folder / "far/x.npy").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777U, 0640U);
}

TEST(NpyWriter, leaves_a_file_that_it_keeps_to_others) {
  const TemporaryFolder folder;
  std::string temporary;
  {
    auto writer = NpyWriter::create(folder / "x.npy", 2, 2, "run1");
    writer.flush();
    temporary = writer.temporary_path();
    writer.keep();
  }
  EXPECT_EQ(NpySource(temporary).rows(), 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "x.npy"));
}

TEST(NpyWriter, refuses_a_folder_that_is_not_writable) {
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const OrdinaryUser user;
  expect_error(ErrorCode::usage, {folder.path(), "not writable"},
               [&] { static_cast<void>(NpyWriter::create(folder / "x.npy", 2, 2, "run1")); });
}

TEST(NpyWriter, says_when_the_final_name_was_taken_by_a_folder_meanwhile) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  {
    auto writer = NpyWriter::create(path, 4, 4, "run1");
    std::filesystem::create_directory(path);
    expect_error(ErrorCode::internal, {path, "renaming"}, [&] { writer.commit(); });
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x.npy"});
}

}  // namespace heddle
