#include "apps/matrix_input.hpp"

#include "algorithms/io/agreement.hpp"

namespace heddle {

void MatrixInput::add_to(Undertaking& undertaking, const Matrix<double>& a, const Shadows& shadow) {
  const std::optional<GeneratedKind> kind = problem_.generated();
  if (!kind) return;
  generated_ = GeneratedTiles::made_by(a.spec(), *kind, shadow);
  for (const Matrix<double>& numbers : generated_->numbers()) {
    undertaking.held.push_back({numbers, Undertaking::Use::sides});
  }
  undertaking.reading.push_back(generated_->job(a));
}

void MatrixInput::prepare(const Matrix<double>& a) {
  together(node_, [&] { source_ = &problem_.matrix(); });
  const std::optional<GeneratedKind> kind = problem_.generated();
  if (!kind) {
    return prepare_together(
        node_, *source_,
        a.storage() == Storage::lower ? wanted_of_symmetric(a, *source_) : wanted_of_tiles(a));
  }
  together(node_, [&] {
    generated_ = GeneratedTiles::made_by(
        a.spec(), *kind, [&](const MatrixSpec& spec) { return node_.matrix<double>(spec); });
  });
  generated_->fill(source_->generated());
}

void MatrixInput::set(const Matrix<double>& a, Checked checked) {
  if (generated_) return run_job(node_, generated_->job(a));
  const auto read = a.storage() == Storage::lower ? read_symmetric : read_tiles;
  read(*source_, a, checked, problem_.matrix_name());
}

MatrixSpec MatrixInput::passing_spec(const MatrixSpec& a) const {
  return heddle::passing_spec(a, is_generated() ? PassingFrom::generated : PassingFrom::host);
}

Again MatrixInput::again(const Matrix<double>& tiles) const {
  return generated_ ? Again::of_generated(tiles, *generated_) : Again::of_source(tiles, source_);
}

}  // namespace heddle
