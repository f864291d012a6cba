#include "algorithms/matrix/mtx_file.hpp"

#include <algorithm>
#include <clocale>
#include <cmath>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/matrix/files.hpp"

namespace heddle {

namespace {

using testing::expect_error;
using testing::TemporaryFolder;

std::string banner(const std::string& kind) {
  return "%%MatrixMarket matrix " + kind + "\n";
}

/// Reads the whole file, on one node.
testing::Block read_matrix(const std::string& content) {
  const TemporaryFolder folder;
  MtxSource source(folder.write("a.mtx", content));
  source.prepare(testing::all_rows(source.rows()));
  return testing::read_all(source);
}

void expect_refused_mtx(const std::string& content, const std::vector<std::string>& parts) {
  SCOPED_TRACE(content);
  const TemporaryFolder folder;
  const std::string path = folder.write("a.mtx", content);
  std::vector<std::string> all = parts;
  all.push_back(path);
  expect_error(ErrorCode::usage, all, [&] {
    MtxSource source(path);
    source.prepare(testing::all_rows(source.rows()));
  });
}

double element(std::int64_t i, std::int64_t j) {
  return std::sin(static_cast<double>(1 + i * 37 + j));
}

std::string array_text(std::int64_t rows, std::int64_t columns, bool symmetric) {
  std::string text = banner(symmetric ? "array real symmetric" : "array real general");
  text += fmt::format("% a comment\n\n{} {}\n", rows, columns);
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = symmetric ? j : 0; i < rows; ++i)
      text += fmt::format("{}\n", element(i, j));
  }
  return text;
}

/// All elements of the matrix, or of its lower triangle, in random order; in a symmetric one half
/// of the elements in the upper triangle's place.
std::string coordinate_text(std::int64_t rows, std::int64_t columns, bool symmetric) {
  std::vector<std::string> lines;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = symmetric ? j : 0; i < rows; ++i) {
      const bool swap = symmetric && (i + j) % 2 == 0;
      lines.push_back(
          fmt::format("{} {} {}\n", (swap ? j : i) + 1, (swap ? i : j) + 1, element(i, j)));
    }
  }
  std::shuffle(lines.begin(), lines.end(), std::mt19937(7));
  std::string text = banner(symmetric ? "coordinate real symmetric" : "coordinate real general");
  text += fmt::format("{} {} {}\n", rows, columns, lines.size());
  for (const std::string& line : lines) text += line;
  return text;
}

/// Every node of the grid, given only its part, reads its tiles and the diagonal as they are.
void expect_right_parts(const std::string& content, bool symmetric, WantedPart part) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.mtx", content);
  const Distribution distribution{.grid_rows = 2, .grid_columns = 3};
  for (std::int32_t node = 0; node < distribution.node_count(); ++node) {
    MtxSource source(path);
    const TileLayout layout{.rows = source.rows(), .columns = source.columns(), .tile = 4};
    source.prepare(wanted_by_node(layout, distribution, NodeId{node}, part));
    EXPECT_EQ(source.is_symmetric(), symmetric);
    const auto expected = [&](std::int64_t i, std::int64_t j) {
      return symmetric && i < j ? element(j, i) : element(i, j);
    };
    for (std::int32_t ti = 0; ti < layout.tile_rows(); ++ti) {
      for (std::int32_t tj = 0; tj < layout.tile_columns(); ++tj) {
        if (distribution.node(TileRow{ti}, WideColumn{tj}) != NodeId{node}) continue;
        if (part != WantedPart::all_tiles && ti < tj) continue;
        const std::int64_t row = layout.row_begin(TileRow{ti});
        const std::int64_t column = layout.column_begin(TileColumn{tj});
        const std::int64_t rows = layout.row_count(TileRow{ti});
        const std::int64_t columns = layout.column_count(TileColumn{tj});
        const auto tile = testing::read_block(source, row, column, rows, columns);
        for (std::int64_t j = 0; j < columns; ++j) {
          for (std::int64_t i = 0; i < rows; ++i) {
            ASSERT_EQ(tile(i, j), expected(row + i, column + j));
          }
        }
        if (part != WantedPart::lower_tiles_and_mirrors) continue;
        const auto mirror = testing::read_block(source, column, row, columns, rows);
        ASSERT_EQ(mirror(columns - 1, 0), expected(column + columns - 1, row));
      }
    }
    std::vector<double> diagonal(
        static_cast<std::size_t>(std::min(source.rows(), source.columns())));
    source.read_diagonal(0, diagonal);
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      const auto k = static_cast<std::int64_t>(i);
      ASSERT_EQ(diagonal[i], element(k, k));
    }
  }
}

}  // namespace

TEST(MtxSource, gives_each_node_its_part_of_an_array) {
  expect_right_parts(array_text(23, 17, false), false, WantedPart::all_tiles);
  expect_right_parts(array_text(6, 27, false), false, WantedPart::all_tiles);
  expect_right_parts(array_text(19, 19, false), false, WantedPart::lower_tiles_and_mirrors);
}

TEST(MtxSource, gives_both_triangles_of_a_symmetric_array) {
  expect_right_parts(array_text(19, 19, true), true, WantedPart::all_tiles);
  expect_right_parts(array_text(19, 19, true), true, WantedPart::lower_tiles);
  expect_right_parts(array_text(22, 22, true), true, WantedPart::lower_tiles_and_mirrors);
}

TEST(MtxSource, gives_each_node_its_part_of_a_coordinate_file) {
  expect_right_parts(coordinate_text(23, 17, false), false, WantedPart::all_tiles);
  expect_right_parts(coordinate_text(19, 19, false), false, WantedPart::lower_tiles);
}

TEST(MtxSource, gives_both_triangles_of_a_symmetric_coordinate_file) {
  expect_right_parts(coordinate_text(19, 19, true), true, WantedPart::all_tiles);
  expect_right_parts(coordinate_text(19, 19, true), true, WantedPart::lower_tiles_and_mirrors);
}

TEST(MtxSource, reads_an_array_as_people_write_it) {
  const auto a = read_matrix(
      "%%matrixmarket MATRIX Array Real GENERAL\r\n%c\r\n\r\n 2  3 \r\n1\r\n  -2.5e-3\t\r\n+3\r\n"
      "4.\r\n.5\r\n6E+1");
  EXPECT_EQ(a(0, 0), 1.0);
  EXPECT_EQ(a(1, 0), -2.5e-3);
  EXPECT_EQ(a(0, 1), 3.0);
  EXPECT_EQ(a(0, 2), 0.5);
  EXPECT_EQ(a(1, 2), 60.0);
}

TEST(MtxSource, missing_entries_are_zero) {
  const auto a = read_matrix(banner("coordinate integer general") + "3 2 2\n3 1 -7\n\n1 2 4\n\n");
  EXPECT_EQ(a(2, 0), -7.0);
  EXPECT_EQ(a(0, 1), 4.0);
  EXPECT_EQ(a(0, 0), 0.0);
  EXPECT_EQ(a(2, 1), 0.0);
}

TEST(MtxSource, reads_extreme_numbers) {
  const auto a =
      read_matrix(banner("array real general") +
                  "7 1\n1e-400\n-0.0\n4.9e-324\n1.7976931348623157e308\nnan\n-inf\n-1e-999\n");
  EXPECT_EQ(a(0, 0), 0.0);
  EXPECT_TRUE(std::signbit(a(1, 0)));
  EXPECT_EQ(a(2, 0), 4.9e-324);
  EXPECT_EQ(a(3, 0), 1.7976931348623157e308);
  EXPECT_TRUE(std::isnan(a(4, 0)));
  EXPECT_EQ(a(5, 0), -INFINITY);
  EXPECT_EQ(a(6, 0), 0.0);
}

TEST(MtxSource, does_not_depend_on_the_locale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  EXPECT_EQ(read_matrix(banner("array real general") + "1 1\n1.5\n")(0, 0), 1.5);
  std::setlocale(LC_ALL, before.c_str());
}

TEST(MtxSource, takes_empty_matrices) {
  static_cast<void>(read_matrix(banner("array real general") + "0 0\n"));
  static_cast<void>(read_matrix(banner("array real general") + "5 0"));
  static_cast<void>(read_matrix(banner("coordinate real symmetric") + "0 0 0\n"));
  EXPECT_EQ(read_matrix(banner("coordinate real general") + "1 1 0\n")(0, 0), 0.0);
}

TEST(MtxSource, names_the_kinds_that_it_cannot_use) {
  expect_refused_mtx(banner("array complex general"), {"line 1", "'complex'"});
  expect_refused_mtx(banner("coordinate pattern general"), {"'pattern'"});
  expect_refused_mtx(banner("array real skew-symmetric"), {"'skew-symmetric'"});
  expect_refused_mtx(banner("array real hermitian"), {"'hermitian'"});
  expect_refused_mtx("%%MatrixMarket vector array real general\n", {"'vector'"});
  expect_refused_mtx(banner("dense real general"), {"'dense'"});
  expect_refused_mtx(banner("array real"), {"symmetry"});
  expect_refused_mtx("%MatrixMarket matrix array real general\n", {"not a Matrix Market file"});
  expect_refused_mtx("\x93NUMPY", {"not a Matrix Market file"});
}

TEST(MtxSource, names_what_is_wrong_with_the_sizes) {
  const std::string array = banner("array real general");
  expect_refused_mtx(array, {"line 1", "before the line with the sizes"});
  expect_refused_mtx(array + "% 2 2\n", {"line 2", "before the line with the sizes"});
  expect_refused_mtx(array + "2\n1\n2\n", {"line 2", "number of columns"});
  expect_refused_mtx(array + "2 two\n", {"line 2", "'two'"});
  expect_refused_mtx(array + "-2 2\n", {"line 2", "'-2'"});
  expect_refused_mtx(array + "2 2 4\n", {"line 2", "'4'"});
  expect_refused_mtx(array + "1000000000000 1000000000000\n", {"too large"});
  expect_refused_mtx(array + "99999999999999999999 1\n", {"line 2", "rows", "too large"});
  expect_refused_mtx(array + "100000 100000\n1\n2\n", {"too few", "10000000000"});
  expect_refused_mtx(banner("coordinate real general") + "2 2\n", {"number of entries"});
  expect_refused_mtx(banner("array real symmetric") + "2 3\n", {"2 x 3"});
  expect_refused_mtx("", {"empty"});
}

TEST(MtxSource, names_the_line_of_a_wrong_array_value) {
  const std::string two = banner("array real general") + "2 1\n";
  expect_refused_mtx(two + "1\nx2\n", {"line 4", "'x2'"});
  expect_refused_mtx(two + "1,5\n2\n", {"line 3", "'1,5' is not a number; write a point"});
  expect_refused_mtx(two + "1 2\n3\n", {"line 3", "unexpected '2' after the value '1'"});
  expect_refused_mtx(two + "1e400\n2\n", {"line 3", "'1e400' is too large for a double"});
  expect_refused_mtx(two + "-1D+400\n2\n", {"line 3", "'-1D+400' is too large for a double"});
  expect_refused_mtx(two + "1d\n2\n", {"line 3", "'1d' is not a number"});
  expect_refused_mtx(two + "0x10\n2\n", {"line 3", "'0x10' is not a number"});
  expect_refused_mtx(two + "1234567\n",
                     {"line 4", "2 are announced in line 2, the file ends after 1"});
  expect_refused_mtx(two + "1\n2\n3\n", {"line 5", "too many", "'3'"});
  expect_refused_mtx(banner("array integer general") + "2 1\n1\n2.5\n",
                     {"line 4", "'2.5' is not an integer", "write 'real' there"});
}

TEST(MtxSource, takes_blank_lines_and_comments_between_all_lines) {
  for (const char* gap : {"\n", "\r\n", " \t \n", "% why\n", "  % why\r\n", "\n\n%\n\n"}) {
    SCOPED_TRACE(gap);
    const std::string g = gap;
    const auto a = read_matrix(banner("array real general") + g + "2 2\n" + g + "1\n" + g + "2\n" +
                               g + "3\n" + g + "4\n" + g);
    EXPECT_EQ(a(1, 0), 2.0);
    EXPECT_EQ(a(0, 1), 3.0);
    const auto c = read_matrix(banner("coordinate real symmetric") + g + "2 2 2\n" + g +
                               "\t1 1\t5\n" + g + "  2   1 6  \n" + g);
    EXPECT_EQ(c(0, 0), 5.0);
    EXPECT_EQ(c(0, 1), 6.0);
  }
}

TEST(MtxSource, passes_over_blank_lines_and_comments_in_parts_it_does_not_want) {
  const std::string text =
      banner("array real general") + "3 2\n1\n\n% two\n2\n \t\n3\n4\n\n\n5\n%\n6\n";
  const TemporaryFolder folder;
  MtxSource source(folder.write("a.mtx", text));
  source.prepare([](GlobalColumn column, std::vector<RowRange>& ranges) {
    if (column.value() == 1) ranges.push_back({GlobalRow{2}, GlobalRow{3}});
  });
  EXPECT_EQ(testing::read_block(source, 2, 1, 1, 1)(0, 0), 6.0);
}

TEST(MtxSource, takes_what_editors_and_fortran_write) {
  const auto mark = read_matrix("\xEF\xBB\xBF" + banner("array real general") + "1 1\n7\n");
  EXPECT_EQ(mark(0, 0), 7.0);
  const auto late = read_matrix("\n \t\n  " + banner("array real general") + "1 1\n7\n");
  EXPECT_EQ(late(0, 0), 7.0);
  const auto d =
      read_matrix(banner("array real general") + "4 1\n1.01D+00\n  -2.5d-3\n.5D2\n1D-400\n");
  EXPECT_EQ(d(0, 0), 1.01);
  EXPECT_EQ(d(1, 0), -2.5e-3);
  EXPECT_EQ(d(2, 0), 50.0);
  EXPECT_EQ(d(3, 0), 0.0);
  const auto whole = read_matrix(banner("coordinate UNSIGNED-INTEGER General") + "1 1 1\n1 1 3\n");
  EXPECT_EQ(whole(0, 0), 3.0);
}

TEST(MtxSource, names_other_encodings_and_how_to_be_rid_of_them) {
  const std::string text = banner("array real general") + "1 1\n7\n";
  std::string wide;
  for (const char c : text) wide += {c, '\0'};
  expect_refused_mtx("\xFF\xFE" + wide, {"line 1", "UTF-16", "iconv"});
  expect_refused_mtx(wide, {"line 1", "UTF-16", "iconv"});
  expect_refused_mtx("\x1F\x8B\x08 whatever\n", {"line 1", "compressed", "gunzip"});
  std::string old = text;
  std::replace(old.begin(), old.end(), '\n', '\r');
  expect_refused_mtx(old, {"line 1", "CR alone"});
}

TEST(MtxSource, quotes_bytes_that_are_no_text) {
  const std::string head = banner("array real general") + "2 1\n1\n";
  expect_refused_mtx(head + std::string("\0\0\0\n", 4), {"line 4", "'\\x00\\x00\\x00' is not a"});
  expect_refused_mtx(head + "\x1b[2J\n", {"line 4", "'\\x1B[2J' is not a number"});
  expect_refused_mtx(head + "5\xE9\n", {"line 4", "'5\\xE9' is not a number"});
  expect_refused_mtx(banner("array \x1b[31m general"), {"'\\x1B[31m'"});
}

TEST(MtxSource, tells_each_node_that_reads_a_line_the_same) {
  // Any node that finds something finds it in the line where it is, with what it skips before.
  const TemporaryFolder folder;
  const std::string path =
      folder.write("a.mtx", banner("array real general") + "4 2\n1\n\n2\n%\n3\n4\n\n5\n6\nx\n8\n");
  for (std::int64_t first = 0; first <= 2; ++first) {
    MtxSource source(path);
    expect_error(ErrorCode::usage, {"line 12: 'x' is not a number"}, [&] {
      source.prepare([first](GlobalColumn column, std::vector<RowRange>& ranges) {
        if (column.value() == 1) ranges.push_back({GlobalRow{first}, GlobalRow{3}});
      });
    });
  }
}

TEST(MtxSource, notices_missing_and_surplus_values_in_parts_it_does_not_want) {
  const TemporaryFolder folder;
  const auto prepare = [&](const std::string& content) {
    return [path = folder.write("a.mtx", content)] {
      MtxSource source(path);
      source.prepare([](GlobalColumn, std::vector<RowRange>&) {});
    };
  };
  // Two values and a comment fill the place of three; the diagonal element is line 3.
  const std::string head = banner("array real general") + "3 1\n1\n";
  expect_error(ErrorCode::usage, {"line 5", "the file ends after 2"}, prepare(head + "1234567\n"));
  expect_error(ErrorCode::usage, {"line 6", "too many"}, prepare(head + "2\n3\n4\n"));
}

TEST(MtxSource, names_the_line_of_a_wrong_coordinate_entry) {
  const std::string head = banner("coordinate real general") + "3 3 2\n1 1 1.0\n";
  expect_refused_mtx(head + "4 1 2\n", {"line 4", "row 4", "1 to 3"});
  expect_refused_mtx(head + "1 0 2\n", {"line 4", "column 0", "1 to 3"});
  expect_refused_mtx(head + "1 x 2\n", {"line 4", "'x'"});
  expect_refused_mtx(head + "1.5 1 2\n", {"line 4", "'1.5'"});
  expect_refused_mtx(head + "1 2 abc\n", {"line 4", "'abc'"});
  expect_refused_mtx(head + "1 2      \n", {"line 4", "value is missing"});
  expect_refused_mtx(head + "1 2 3 4\n", {"line 4", "unexpected '4' after the value '3'"});
  expect_refused_mtx(head + "18446744073709551617 2 3\n",
                     {"line 4", "row 18446744073709551617 is outside of 1 to 3"});
  expect_refused_mtx(head + "                \n",
                     {"line 5", "too few", "2 are announced", "ends after 1"});
  expect_refused_mtx(head + "1 2 3\n1 3 3\n", {"line 5", "too many", "'1 3 3'"});
}

TEST(MtxSource, names_both_lines_of_a_position_that_comes_twice) {
  const std::string head = banner("coordinate real general") + "%\n3 3 3\n1 2 1.0\n";
  expect_refused_mtx(head + "\n3 1 2\n1 2 3\n", {"line 7", "(1, 2)", "line 4"});
  expect_refused_mtx(head + "2 2 2\n2 2 3\n", {"line 6", "(2, 2)", "line 5"});
  expect_refused_mtx(banner("coordinate real symmetric") + "3 3 2\n3 1 1\n1 3 1\n",
                     {"line 4", "(3, 1)", "line 3"});
}

}  // namespace heddle
