#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/matrix/source.hpp"
#include "kernels/kernels.hpp"

namespace heddle {

/// How the kernel `generate` (kernels/kernels.hpp) makes a matrix, wherever its tiles live.
struct GeneratedKind {
  kernel::ElementKind elements = kernel::ElementKind::uniform;
  std::uint64_t seed = 0;
};

/// What it makes it of.
struct GeneratedElements {
  GeneratedKind kind;
  /// Numbers of all columns of the matrix, then the next number of all: as many as the kind has.
  std::vector<double> of_columns;
  std::vector<double> of_rows;  ///< likewise
};

/// A matrix whose elements are computed.
class GeneratedSource final : public MatrixSource {
 public:
  enum class Finite : std::uint8_t {
    yes,    ///< all elements, by construction: nobody needs to look at them
    maybe,  ///< whoever reads them looks
  };

  /// `description`: what follows "generated: ".
  GeneratedSource(std::int64_t rows, std::int64_t columns, GeneratedElements elements,
                  std::string description, bool is_symmetric, Finite finite = Finite::yes);

  [[nodiscard]] std::string description() const override { return "generated: " + description_; }
  [[nodiscard]] bool is_symmetric() const override { return is_symmetric_; }
  [[nodiscard]] std::shared_ptr<const GeneratedElements> generated() const override {
    return finite_ == Finite::yes ? elements_ : nullptr;
  }

 private:
  void read_block(GlobalRow row, GlobalColumn column, TileView out) const override;

  /// Shared with workers, which may go on for a moment when a failed node's caller has left.
  std::shared_ptr<const GeneratedElements> elements_;
  std::string description_;
  bool is_symmetric_;
  Finite finite_;
};

}  // namespace heddle
