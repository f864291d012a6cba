#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/matrix/source.hpp"
#include "base/error.hpp"
#include "kernels/kernel.hpp"

namespace heddle::testing {

/// A folder that lasts as long as the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "heddle-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return *this / name;
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// `action` throws heddle::Error with this code, and the message has all `parts`.
inline void expect_error(ErrorCode code, const std::vector<std::string>& parts,
                         const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "no error; expected one with '" << parts.at(0) << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
          << "'" << part << "' is not in '" << error.what() << "'";
    }
  }
}

/// A block with memory of its own, and sentinels below each column that writers must not touch.
class Block {
 public:
  static constexpr double sentinel = -77.25;

  Block(std::int64_t rows, std::int64_t columns)
      : rows_(rows),
        columns_(columns),
        elements_(static_cast<std::size_t>((rows + 3) * columns + 1), sentinel) {}

  [[nodiscard]] TileView view() { return {elements_.data(), rows_, columns_, rows_ + 3}; }
  [[nodiscard]] double operator()(std::int64_t i, std::int64_t j) const {
    return elements_[static_cast<std::size_t>(i + j * (rows_ + 3))];
  }
  [[nodiscard]] bool has_all_sentinels() const {
    for (std::int64_t j = 0; j < columns_; ++j) {
      for (std::int64_t i = rows_; i < rows_ + 3; ++i) {
        if ((*this)(i, j) != sentinel) return false;
      }
    }
    return elements_.back() == sentinel;
  }

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::vector<double> elements_;
};

/// The block of `source` that begins at (row, column).
inline Block read_block(const MatrixSource& source, std::int64_t row, std::int64_t column,
                        std::int64_t rows, std::int64_t columns) {
  Block block(rows, columns);
  source.read(GlobalRow{row}, GlobalColumn{column}, block.view());
  EXPECT_TRUE(block.has_all_sentinels());
  return block;
}

inline Block read_all(const MatrixSource& source) {
  return read_block(source, 0, 0, source.rows(), source.columns());
}

/// All rows of all columns.
inline WantedRows all_rows(std::int64_t rows) {
  return [rows](GlobalColumn, std::vector<RowRange>& ranges) {
    ranges.push_back({GlobalRow{0}, GlobalRow{rows}});
  };
}

}  // namespace heddle::testing
