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
  if (!kind) return prepare_reading(*source_, a);
  together(node_, [&] {
    generated_ = GeneratedTiles::made_by(
        a.spec(), *kind, [&](const MatrixSpec& spec) { return node_.matrix<double>(spec); });
  });
  generated_->fill(source_->generated());
}

void MatrixInput::begin(const Matrix<double>& a, Checked checked) {
  if (generated_) {
    making_ = node_.submit(generated_->job(a));
  } else {
    reading_.emplace(*source_, a, checked, problem_.matrix_name());
  }
}

void MatrixInput::begin_sides(const Matrix<double>& sides) {
  MatrixSource* source = nullptr;
  together(node_, [&] { source = &problem_.right_hand_sides(); });
  prepare_reading(*source, sides);
  reading_sides_.emplace(*source, sides, Checked::yes, problem_.sides_name());
}

void MatrixInput::finish() {
  if (making_) wait_for(*making_);
  if (reading_) reading_->finish();
  if (reading_sides_) reading_sides_->finish();
  making_.reset();
  reading_.reset();
  reading_sides_.reset();
}

MatrixSpec MatrixInput::passing_spec(const MatrixSpec& a) const {
  return heddle::passing_spec(a, is_generated() ? PassingFrom::generated : PassingFrom::host);
}

Again MatrixInput::again(const Matrix<double>& tiles) const {
  return generated_ ? Again::of_generated(tiles, *generated_) : Again::of_source(tiles, source_);
}

}  // namespace heddle
