#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "algorithms/matrix/mapped_file.hpp"
#include "algorithms/matrix/source.hpp"

namespace heddle {

/// What to do with a file that holds a one-dimensional array.
enum class OneDimensional : std::uint8_t {
  refuse,
  as_column,  ///< a matrix of one column: right-hand sides
};

/// A matrix in a NumPy .npy file: float64, C or Fortran order. The file is mapped; reading touches
/// the pages of the wanted block alone, so every process opens the file for itself.
class NpySource final : public MatrixSource {
 public:
  /// Throws Error(usage) that names the file and what is wrong: not there, not .npy, another data
  /// type, not two-dimensional, fewer or more bytes than the shape needs.
  explicit NpySource(std::string path, OneDimensional one_dimensional = OneDimensional::refuse);

  [[nodiscard]] std::string description() const override;

  void check_unchanged() const override { file_.check_unchanged(); }

  /// True when the file holds a one-dimensional array.
  [[nodiscard]] bool is_vector() const { return is_vector_; }

 private:
  void open(OneDimensional one_dimensional);
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override;

  MappedFile file_;
  std::size_t data_offset_ = 0;
  bool fortran_order_ = false;
  bool big_endian_ = false;
  bool is_vector_ = false;
};

}  // namespace heddle
