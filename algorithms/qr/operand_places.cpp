#include "algorithms/qr/operand_places.hpp"

#include "base/assert.hpp"

namespace heddle::qr_tree {

OperandPlaces::OperandPlaces(const QrOperand& x) : x_(x) {
  if (!moves()) return;
  const TileLayout& l = x_.x.layout();
  at_.assign(static_cast<std::size_t>(l.tile_rows()) * static_cast<std::size_t>(l.tile_columns()),
             nullptr);
}

std::optional<OperandPlaces::Move> OperandPlaces::move(TileRow i, TileColumn d, PlaceId place) {
  const TileRef from = tile(i, d);
  if (from.home.place == place) return std::nullopt;
  const Matrix<double>* to = &x_.x;
  for (const Matrix<double>& m : x_.elsewhere) {
    if (m.home(i, d).place == place) to = &m;
  }
  HEDDLE_CHECK(to->home(i, d).place == place, "an operand has no tile ({}, {}) at place {}",
               i.value(), d.value(), place.value());
  at_[index(i, d)] = to;
  return Move{from, (*to)(i, d)};
}

std::optional<OperandPlaces::Move> OperandPlaces::move_home(TileRow i, TileColumn d) {
  return move(i, d, x_.x.home(i, d).place);
}

std::size_t OperandPlaces::index(TileRow i, TileColumn d) const {
  return x_.x(i, d).id.position();
}

const Matrix<double>& OperandPlaces::matrix(TileRow i, TileColumn d) const {
  if (!moves() || at_[index(i, d)] == nullptr) return x_.x;
  return *at_[index(i, d)];
}

}  // namespace heddle::qr_tree
