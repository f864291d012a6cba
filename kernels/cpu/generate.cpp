#include "kernels/cpu/generate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "kernels/cpu/arguments.hpp"
#include "kernels/cpu/defined.hpp"
#include "kernels/cpu/generator_loops.hpp"

namespace heddle::host {
namespace {

using kernel::ElementKind;
using kernel::GenerateParameters;
using kernel::RandomStream;

/// Makes a column piece by piece, each with another array of its length beside it: calls make(first
/// row of the piece, piece, array).
template <class Make>
void for_pieces(std::span<double> column, const Make& make) {
  std::array<double, 512> memory{};
  for (std::size_t begin = 0; begin < column.size(); begin += memory.size()) {
    const std::size_t count = std::min(memory.size(), column.size() - begin);
    make(begin, column.subspan(begin, count), std::span(memory).first(count));
  }
}

/// One column of a part.
class ColumnMaker {
 public:
  ColumnMaker(const GenerateParameters& parameters, const ElementVectors& columns,
              const ElementVectors& rows)
      : parameters_(parameters), columns_(columns), rows_(rows), loops_(generator_loops()) {}

  void make(std::int64_t j, std::span<double> out) const {
    switch (parameters_.kind) {
      case ElementKind::uniform:
        return uniform(parameters_.row, parameters_.column + j, out);
      case ElementKind::scaled:
        uniform(parameters_.row, parameters_.column + j, out);
        for (double& value : out) value *= columns_[0][j];
        return;
      case ElementKind::combined:
        return combine(j, out);
      case ElementKind::powers:
        return raise(j, out);
      case ElementKind::ratio:
        for (std::size_t i = 0; i < out.size(); ++i) {
          out[i] = kernel::ratio_element(
              static_cast<double>(parameters_.row + 1) + static_cast<double>(i),
              static_cast<double>(parameters_.column + j + 1));
        }
        return;
      case ElementKind::identity:
        std::ranges::fill(out, 0.0);
        return on_diagonal(j, out, [](double& element, std::size_t) { element = 1.0; });
      case ElementKind::low_rank:
        loops_.low_rank({rows_[0], rows_[1], rows_[2], rows_[3]},
                        {columns_[0][j], columns_[1][j], columns_[2][j], columns_[3][j]}, out);
        return on_diagonal(j, out,
                           [this](double& element, std::size_t i) { element += rows_[4][i]; });
      case ElementKind::matern_half:
      case ElementKind::matern_three_halves:
      case ElementKind::matern_five_halves:
        loops_.distance(rows_[0], rows_[1], columns_[0][j], columns_[1][j], columns_[2][j], out);
        loops_.matern(parameters_.kind, out);
        return on_diagonal(j, out,
                           [this, j](double& element, std::size_t) { element = columns_[3][j]; });
    }
  }

 private:
  void uniform(std::int64_t row, std::int64_t column, std::span<double> out) const {
    loops_.uniform(parameters_.seed, RandomStream::entries, row, column, out);
  }

  /// Calls set(element, its row of the part) if column j has an element of the diagonal.
  template <class Set>
  void on_diagonal(std::int64_t j, std::span<double> out, const Set& set) const {
    const std::int64_t i = parameters_.column + j - parameters_.row;
    if (i < 0 || i >= static_cast<std::int64_t>(out.size())) return;
    set(out[static_cast<std::size_t>(i)], static_cast<std::size_t>(i));
  }

  void combine(std::int64_t j, std::span<double> out) const {
    const std::int64_t column = parameters_.column + j;
    const auto count = static_cast<std::int64_t>(columns_[0][j]);
    if (count < 0) return uniform(parameters_.row, column, out);
    for_pieces(out, [&](std::size_t begin, std::span<double> piece, std::span<double> entries) {
      const auto add = [&](double factor, std::int64_t from) {
        uniform(parameters_.row + static_cast<std::int64_t>(begin), from, entries);
        for (std::size_t i = 0; i < piece.size(); ++i) piece[i] += factor * entries[i];
      };
      std::ranges::fill(piece, 0.0);
      for (std::int64_t k = 0; k < count; ++k) {
        add(columns_[4 + k][j], static_cast<std::int64_t>(columns_[1 + k][j]));
      }
      add(columns_[7][j], column);
    });
  }

  /// Powers by repeated squaring, from the lowest binary digit of the exponent up.
  void raise(std::int64_t j, std::span<double> out) const {
    for_pieces(out, [&](std::size_t begin, std::span<double> powers, std::span<double> squares) {
      std::copy_n(rows_[0] + begin, squares.size(), squares.begin());
      std::ranges::fill(powers, 1.0);
      for (std::int64_t digits = parameters_.column + j; digits > 0; digits /= 2) {
        if (digits % 2 != 0) {
          for (std::size_t i = 0; i < powers.size(); ++i) powers[i] *= squares[i];
        }
        for (std::size_t i = 0; i < powers.size(); ++i) squares[i] *= squares[i];
      }
    });
  }

  const GenerateParameters& parameters_;
  const ElementVectors& columns_;
  const ElementVectors& rows_;
  const GeneratorLoops& loops_;
};

}  // namespace

void generate(const GenerateParameters& parameters, const ElementVectors& columns,
              const ElementVectors& rows, const TileView& out) {
  const ColumnMaker maker(parameters, columns, rows);
  for (std::int64_t j = 0; j < out.columns; ++j) {
    maker.make(j, {&out(0, j), static_cast<std::size_t>(out.rows)});
    if (parameters.is_lower == 0) continue;
    const std::int64_t above =
        std::clamp<std::int64_t>(parameters.column + j - parameters.row, 0, out.rows);
    std::fill_n(&out(0, j), above, 0.0);
  }
}

}  // namespace heddle::host

namespace heddle::kernel {
namespace {

std::int64_t run_generate(const KernelArguments& arguments) {
  const GenerateTiles tiles = generate_tiles(arguments);
  host::generate(arguments.parameters.as<GenerateParameters>(),
                 {tiles.columns.data, tiles.columns.leading}, {tiles.rows.data, tiles.rows.leading},
                 tiles.out);
  return 0;
}

}  // namespace

constinit const Kernel generate = defined("generate", run_generate, cuda::generate);

}  // namespace heddle::kernel
