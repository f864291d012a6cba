#include "apps/matrix_input.hpp"

#include "algorithms/io/agreement.hpp"

namespace heddle {

void MatrixInput::add_to(Undertaking& undertaking, const Matrix<double>& a,
                         const Shadows& shadow) const {
  const std::optional<GeneratedKind> kind = problem_.generated();
  if (!kind) return;
  const GeneratedTiles tiles = GeneratedTiles::made_by(a.spec(), *kind, shadow);
  for (const Matrix<double>& numbers : tiles.numbers()) {
    undertaking.held.push_back({numbers, Undertaking::Use::sides});
  }
  undertaking.reading.push_back(tiles.job(a));
}

void MatrixInput::prepare(const Matrix<double>& a) {
  together(node_, [&] { static_cast<void>(problem_.matrix()); });
  MatrixSource& source = problem_.matrix();
  const std::optional<GeneratedKind> kind = problem_.generated();
  if (!kind) {
    return prepare_together(
        node_, source,
        a.storage() == Storage::lower ? wanted_of_symmetric(a, source) : wanted_of_tiles(a));
  }
  together(node_, [&] {
    generated_ = GeneratedTiles::made_by(
        a.spec(), *kind, [&](const MatrixSpec& spec) { return node_.matrix<double>(spec); });
  });
  generated_->fill(*source.generated());
}

void MatrixInput::set(const Matrix<double>& a, Checked checked) {
  if (generated_) return run_job(node_, generated_->job(a));
  const auto read = a.storage() == Storage::lower ? read_symmetric : read_tiles;
  read(problem_.matrix(), a, checked, problem_.matrix_name(), {});
}

}  // namespace heddle
