#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/matrix/source.hpp"
#include "kernels/kernels.hpp"

namespace heddle {

/// What the kernel `generate` (kernels/kernels.hpp) makes a matrix of, wherever its tiles live.
struct GeneratedElements {
  kernel::ElementKind kind = kernel::ElementKind::uniform;
  std::uint64_t seed = 0;
  /// Numbers of all columns of the matrix, then the next number of all: as many as the kind has.
  std::vector<double> of_columns;
  std::vector<double> of_rows;  ///< likewise
  bool are_finite = true;       ///< all elements, by construction: nobody needs to look at them
};

/// A matrix whose elements are computed.
class GeneratedSource final : public MatrixSource {
 public:
  /// `description`: what follows "generated: ".
  GeneratedSource(std::int64_t rows, std::int64_t columns, GeneratedElements elements,
                  std::string description, bool is_symmetric);

  [[nodiscard]] std::string description() const override { return "generated: " + description_; }
  [[nodiscard]] bool is_symmetric() const override { return is_symmetric_; }
  [[nodiscard]] const GeneratedElements* generated() const override { return &elements_; }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override;

  GeneratedElements elements_;
  std::string description_;
  bool is_symmetric_;
};

}  // namespace heddle
