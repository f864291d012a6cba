#include "algorithms/matrix/npy_file.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <vector>

#include "tests/matrix/files.hpp"

namespace heddle {

namespace {

using testing::expect_error;
using testing::TemporaryFolder;

/// A file of format `major`.0 with this dictionary, and `count` doubles 0, 1, 2, ...
std::string npy(const std::string& dictionary, std::size_t count, char major = 1,
                std::size_t header_end = 64) {
  std::string file("\x93NUMPY", 6);
  file += {major, '\0'};
  const std::size_t begin = major == 1 ? 10U : 12U;
  std::string header = dictionary;
  while ((begin + header.size() + 1) % header_end != 0) header += ' ';
  header += '\n';
  file += static_cast<char>(header.size() & 0xFFU);
  file += static_cast<char>(header.size() >> 8U);
  if (major > 1) file += {'\0', '\0'};
  file += header;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(i);
    file.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return file;
}

std::string dictionary(const std::string& descr, const std::string& order,
                       const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

void expect_refused_npy(const std::string& content, const std::vector<std::string>& parts,
                        OneDimensional one_dimensional = OneDimensional::refuse) {
  const TemporaryFolder folder;
  const std::string path = folder.write("k.npy", content);
  std::vector<std::string> all = parts;
  all.push_back(path);
  expect_error(ErrorCode::usage, all, [&] { const NpySource source(path, one_dimensional); });
}

}  // namespace

TEST(NpySource, reads_any_block_of_a_file_in_fortran_order) {
  const TemporaryFolder folder;
  const NpySource source(folder.write("k.npy", npy(dictionary("<f8", "True", "(5, 7)"), 35)));
  EXPECT_EQ(source.rows(), 5);
  EXPECT_EQ(source.columns(), 7);
  const auto block = testing::read_block(source, 1, 2, 3, 4);
  for (std::int64_t j = 0; j < 4; ++j) {
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(block(i, j), static_cast<double>(1 + i + (2 + j) * 5));
    }
  }
}

TEST(NpySource, reads_any_block_of_a_file_in_c_order) {
  const TemporaryFolder folder;
  const std::string path = folder.write("k.npy", npy(dictionary("<f8", "False", "(70, 90)"), 6300));
  const NpySource source(path);
  for (const auto& [row, column, rows, columns] :
       std::vector<std::array<std::int64_t, 4>>{{0, 0, 70, 90},
                                                {3, 5, 16, 32},
                                                {3, 5, 17, 33},
                                                {69, 89, 1, 1},
                                                {0, 7, 70, 1},
                                                {7, 0, 1, 90},
                                                {2, 2, 0, 5},
                                                {70, 90, 0, 0}}) {
    const auto block = testing::read_block(source, row, column, rows, columns);
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        ASSERT_EQ(block(i, j), static_cast<double>((row + i) * 90 + column + j));
      }
    }
  }
  std::vector<double> diagonal(3);
  source.read_diagonal(4, diagonal);
  EXPECT_EQ(diagonal, (std::vector<double>{4 * 91, 5 * 91, 6 * 91}));
}

TEST(NpySource, reads_all_three_formats_and_data_at_odd_offsets) {
  const TemporaryFolder folder;
  for (const char major : {'\1', '\2', '\3'}) {
    for (const std::size_t align : {64U, 16U, 3U}) {
      const std::string path =
          folder.write("k.npy", npy(dictionary("<f8", "False", "(2, 3)"), 6, major, align));
      const NpySource source(path);
      EXPECT_EQ(testing::read_all(source)(1, 0), 3.0);
    }
  }
}

TEST(NpySource, takes_what_python_may_write_as_the_dictionary) {
  const TemporaryFolder folder;
  for (const char* text :
       {R"({"shape": (2, 3), "fortran_order": False, "descr": "<f8"})",
        "{'descr':'<f8','fortran_order':False,'shape':(2L,3L)}",
        "{ 'descr' : '<f8' ,'fortran_order' : False,'shape' : ( 2 , 3 , ) , } "}) {
    const NpySource source(folder.write("k.npy", npy(text, 6)));
    EXPECT_EQ(testing::read_all(source)(0, 2), 2.0) << text;
  }
}

TEST(NpySource, takes_big_endian_numbers) {
  const TemporaryFolder folder;
  for (const char* order : {"True", "False"}) {
    std::string text = npy(dictionary(">f8", order, "(2, 3)"), 6);
    for (std::size_t at = text.size() - 48; at < text.size(); at += 8) {
      std::reverse(text.begin() + static_cast<std::ptrdiff_t>(at),
                   text.begin() + static_cast<std::ptrdiff_t>(at) + 8);
    }
    const NpySource source(folder.write("k.npy", text));
    EXPECT_EQ(testing::read_all(source)(1, 2), 5.0);
    EXPECT_EQ(testing::read_all(source)(1, 0), order == std::string("True") ? 1.0 : 3.0);
    EXPECT_NE(source.description().find("big-endian"), std::string::npos);
  }
}

TEST(NpySource, takes_all_names_of_its_data_type) {
  const TemporaryFolder folder;
  for (const char* name : {"<f8", "=f8", "f8"}) {
    const NpySource source(folder.write("k.npy", npy(dictionary(name, "True", "(2, 1)"), 2)));
    EXPECT_EQ(testing::read_all(source)(1, 0), 1.0) << name;
  }
}

TEST(NpySource, quotes_bytes_that_are_no_text) {
  expect_refused_npy(npy(dictionary("<f\x1b[2J", "True", "(1, 1)"), 1), {"'<f\\x1B[2J'"});
  expect_refused_npy(npy("{'descr': '<f8', '\x07': 3}", 1), {"unknown key '\\x07'"});
  expect_refused_npy("PK\x03\x04 and so on", {".npz", "numpy.save"});
}

TEST(NpySource, takes_a_vector_as_a_column_when_asked) {
  const TemporaryFolder folder;
  const std::string path = folder.write("b.npy", npy(dictionary("<f8", "False", "(4,)"), 4));
  const NpySource source(path, OneDimensional::as_column);
  EXPECT_TRUE(source.is_vector());
  EXPECT_EQ(source.rows(), 4);
  EXPECT_EQ(source.columns(), 1);
  EXPECT_EQ(testing::read_block(source, 2, 0, 2, 1)(1, 0), 3.0);
  expect_error(ErrorCode::usage, {path, "1 dimension", "(4,)"}, [&] { const NpySource no(path); });
}

TEST(NpySource, takes_empty_matrices) {
  const TemporaryFolder folder;
  for (const char* shape : {"(0, 0)", "(0, 5)", "(5, 0)"}) {
    const NpySource source(folder.write("k.npy", npy(dictionary("<f8", "False", shape), 0)));
    EXPECT_EQ(source.rows() * source.columns(), 0);
    static_cast<void>(testing::read_all(source));
  }
}

TEST(NpySource, names_a_file_that_cannot_be_opened) {
  const TemporaryFolder folder;
  const auto open = [](const std::string& path) {
    return [path] { const NpySource source(path); };
  };
  expect_error(ErrorCode::usage, {folder / "none.npy", "no such file"}, open(folder / "none.npy"));
  expect_error(ErrorCode::usage, {folder.path(), "is a folder"}, open(folder.path()));
  expect_error(ErrorCode::usage, {"e.npy", "empty"}, open(folder.write("e.npy", "")));
  const std::string pipe = folder / "p.npy";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorCode::usage, {pipe, "not a regular file"}, open(pipe));
  expect_error(ErrorCode::usage, {"e.npy/x.npy"}, open(folder / "e.npy/x.npy"));
}

TEST(NpySource, refuses_what_is_no_npy_file) {
  expect_refused_npy("1 2 3\n4 5 6\n", {"not a .npy file"});
  expect_refused_npy("\x93NUM", {"ends within"});
  expect_refused_npy(std::string("\x93NUMPY\1", 7), {"ends before its format version"});
  expect_refused_npy(npy(dictionary("<f8", "True", "(1, 1)"), 1, 4), {"format version is 4.0"});
}

TEST(NpySource, refuses_truncated_files_with_both_sizes) {
  const std::string whole = npy(dictionary("<f8", "True", "(5, 7)"), 35);
  expect_refused_npy(whole.substr(0, whole.size() - 3), {"truncated", "280 bytes", "277"});
  expect_refused_npy(whole.substr(0, 40), {"header is truncated", "128", "40"});
  expect_refused_npy(whole.substr(0, 9), {"header is truncated"});
  expect_refused_npy(whole + "x", {"too long", "280 bytes", "281"});
  expect_refused_npy(npy(dictionary("<f8", "True", "(4294967296, 4294967296)"), 0), {"too large"});
}

TEST(NpySource, names_the_data_type_that_it_cannot_use) {
  const auto with = [](const char* descr) { return npy(dictionary(descr, "True", "(1, 1)"), 1); };
  expect_refused_npy(with("<f4"), {"float32", "<f4", "float64"});
  expect_refused_npy(with(">f4"), {"big-endian float32", ">f4", "astype"});
  expect_refused_npy(with("<i8"), {"int64"});
  expect_refused_npy(with("<c16"), {"complex128"});
  expect_refused_npy(with("|b1"), {"bool"});
  expect_refused_npy(with("|O"), {"'|O'"});
  expect_refused_npy(with("<U12"), {"<U12"});
  expect_refused_npy(npy("{'descr': [('a', '<f8')], 'fortran_order': True, 'shape': (1, 1), }", 1),
                     {"records"});
}

TEST(NpySource, refuses_other_numbers_of_dimensions) {
  expect_refused_npy(npy(dictionary("<f8", "True", "()"), 1), {"0 dimensions", "()"});
  expect_refused_npy(npy(dictionary("<f8", "True", "(2, 2, 2)"), 8), {"3 dimensions", "(2, 2, 2)"},
                     OneDimensional::as_column);
}

TEST(NpySource, refuses_rubbish_in_the_dictionary) {
  const auto expect = [](const std::string& text, const std::vector<std::string>& parts) {
    expect_refused_npy(npy(text, 1), parts);
  };
  expect(dictionary("<f8", "Maybe", "(1, 1)"), {"True or False", "Maybe"});
  expect(dictionary("<f8", "1", "(1, 1)"), {"True or False"});
  expect(dictionary("<f8", "True", "(1, -1)"), {"a length of the shape", "-1"});
  expect(dictionary("<f8", "True", "(1, 99999999999999999999)"), {"a length of the shape"});
  expect(dictionary("<f8", "True", "(1)"), {"','"});
  expect(dictionary("<f8", "True", "[1, 1]"), {"'(' of the shape"});
  expect("{'descr': '<f8', 'shape': (1, 1), }", {"lacks the key 'fortran_order'"});
  expect("{'fortran_order': True, 'shape': (1, 1), }", {"lacks the key 'descr'"});
  expect("{'descr': '<f8', 'fortran_order': True}", {"lacks the key 'shape'"});
  expect("{'descr': '<f8', 'descr': '<f8'}", {"'descr' twice"});
  expect("{'descr': '<f8', 'size': 3}", {"unknown key 'size'"});
  expect("descr: <f8", {"'{'"});
  expect("{'descr: <f8", {"closing quote"});
  expect(dictionary("<f8", "True", "(1, 1)") + " 5", {"nothing but spaces"});
  expect("", {"'{'"});
}

}  // namespace heddle
