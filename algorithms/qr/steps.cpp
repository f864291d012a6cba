#include "algorithms/qr/steps.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace heddle::qr_tree {
namespace {

Rows kept(TileRow tile) {
  return {tile, Rows::Slot::kept};
}
Rows carried(TileRow tile) {
  return {tile, Rows::Slot::carried};
}

/// What the top tile's leaf leaves: R only where nothing is below it. R's tile holds the rows of
/// all panels of its width; if each began there, a panel would have to wait until the one before it
/// has come home.
Rows begin_of(TileRow top, TileRow end) {
  return top + 1 < end ? kept(top) : Rows{top, Rows::Slot::r};
}

std::vector<Step> flat_steps(TileRow top, TileRow end, Way way) {
  Rows at = way == Way::down ? begin_of(top, end) : Rows{top, Rows::Slot::r};
  std::vector<Step> steps;
  if (way == Way::down) steps.push_back({Step::Kind::leaf, top, {}, {}, at});
  for (TileRow k = top + 1; k < end; ++k) {
    const TileRow i = way == Way::up ? end - (k - top) : k;
    steps.push_back({Step::Kind::below, i, at, {}, kept(i)});
    at = kept(i);
  }
  if (way == Way::up) steps.push_back({Step::Kind::leaf, top, at, {}, {}});
  if (way == Way::down && top + 1 < end) steps.push_back({Step::Kind::home, top, at, {}, {}});
  return steps;
}

/// Writes the steps of a binomial tree and knows where each tile's rows are meanwhile.
class BinomialTree {
 public:
  BinomialTree(TileRow top, TileRow end, bool has_short)
      : top_(top),
        last_(end - 1),
        has_short_(has_short),
        count_(end - top - (has_short ? 1 : 0)),
        at_(static_cast<std::size_t>(count_)) {}

  std::vector<Step> down() {
    for (std::int32_t k = 0; k < count_; ++k) {
      at(k) = k == 0 ? begin_of(top_, last_ + 1) : kept(top_ + k);
      steps_.push_back({Step::Kind::leaf, top_ + k, {}, {}, at(k)});
    }
    add_short();
    for (std::int32_t stride = widest(); stride >= 1; stride /= 2) {
      for_pairs(stride, [&](std::int32_t k) { add_pair(k, k - stride); });
    }
    if (top_ < last_) steps_.push_back({Step::Kind::home, top_, at(0), {}, {}});
    return std::move(steps_);
  }

  std::vector<Step> up() {
    at(0) = {top_, Rows::Slot::r};
    for (std::int32_t stride = 1; stride <= widest(); stride *= 2) {
      for_pairs(stride, [&](std::int32_t k) {
        at(k) = kept(top_ + k);
        add_pair(k, k - stride);
      });
    }
    add_short();
    for (std::int32_t k = 0; k < count_; ++k) {
      steps_.push_back({Step::Kind::leaf, top_ + k, at(k), {}, {}});
    }
    return std::move(steps_);
  }

 private:
  /// Where the rows of the tile at this distance from the top are.
  [[nodiscard]] Rows& at(std::int32_t distance) { return at_[static_cast<std::size_t>(distance)]; }

  /// Distance of the pairs that are furthest apart: a power of two.
  [[nodiscard]] std::int32_t widest() const {
    std::int32_t stride = 1;
    while (2 * stride < count_) stride *= 2;
    return stride;
  }
  template <class Visit>
  void for_pairs(std::int32_t stride, const Visit& visit) const {
    for (std::int32_t k = stride; k < std::min(2 * stride, count_); ++k) visit(k);
  }
  /// Ends the rows of k, or begins them on the way up.
  void add_pair(std::int32_t k, std::int32_t partner) {
    steps_.push_back({Step::Kind::pair, top_ + k, at(partner), at(k), carried(top_ + k)});
    at(partner) = carried(top_ + k);
  }
  void add_short() {
    if (!has_short_) return;
    steps_.push_back({Step::Kind::below, last_, at(count_ - 1), {}, kept(last_)});
    at(count_ - 1) = kept(last_);
  }

  TileRow top_;
  TileRow last_;
  bool has_short_;
  std::int32_t count_;  ///< tiles with an R of their own
  std::vector<Rows> at_;
  std::vector<Step> steps_;
};

/// The widest stride of the pairs that the tile at distance k >= 1 ends on the way down.
std::int32_t stride_of(std::int32_t k) {
  return static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(k)));
}

/// Distance of the taker of the rows that the tile at distance k keeps, as if none were short; down
/// it is the widest pair that they begin, or else the pair that ends them (or R's home).
std::int32_t taker_down(std::int32_t k, std::int32_t count) {
  std::int32_t stride = 1;
  while (k + 2 * stride < count) stride *= 2;
  return stride > k && k + stride < count ? k + stride : k;
}

TileRow flat_taker(TileRow top, TileRow end, Way way, const Rows& rows) {
  if (way == Way::down) return rows.tile + 1 < end ? rows.tile + 1 : top;
  return rows.slot == Rows::Slot::r ? end - 1 : rows.tile - 1;
}

TileRow binomial_taker(TileRow top, TileRow end, bool has_short, Way way, const Rows& rows) {
  const std::int32_t count = end - top - (has_short ? 1 : 0);
  const std::int32_t k = rows.tile - top;
  const bool is_short = k == count;
  if (way == Way::down) {
    if (rows.slot == Rows::Slot::carried) {
      const std::int32_t stride = stride_of(k);
      const std::int32_t partner = k - stride;
      return top + (2 * partner >= stride ? partner : partner + stride / 2);
    }
    if (is_short) return top + taker_down(count - 1, count);
    return has_short && k == count - 1 ? end - 1 : top + taker_down(k, count);
  }
  if (is_short) return top + (count - 1);
  if (rows.slot == Rows::Slot::carried) {
    const std::int32_t partner = k - stride_of(k);
    const std::int32_t next = partner + 2 * stride_of(k);
    return top + (next < count ? next : partner);
  }
  const std::int32_t next = rows.slot == Rows::Slot::r ? 1 : k + 2 * stride_of(k);
  if (next < count) return top + next;
  return has_short && k == count - 1 ? end - 1 : top + k;
}

}  // namespace

std::vector<Step> make_steps(QrTree tree, TileRow top, TileRow end, bool has_short, Way way) {
  if (tree == QrTree::flat) return flat_steps(top, end, way);
  BinomialTree binomial(top, end, has_short);
  return way == Way::down ? binomial.down() : binomial.up();
}

TileRow taker_of(QrTree tree, TileRow top, TileRow end, bool has_short, Way way, const Rows& rows) {
  return tree == QrTree::flat ? flat_taker(top, end, way, rows)
                              : binomial_taker(top, end, has_short, way, rows);
}

}  // namespace heddle::qr_tree
