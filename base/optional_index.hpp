#pragma once

namespace heddle {

/// A non-negative index or none; the size of an Index.
template <class Index>
class OptionalIndex {
 public:
  constexpr OptionalIndex() = default;
  constexpr OptionalIndex(Index index) : index_(index) {}  // NOLINT(*-explicit-*): as optional

  [[nodiscard]] constexpr explicit operator bool() const { return index_ != none; }
  [[nodiscard]] constexpr Index operator*() const { return index_; }
  [[nodiscard]] constexpr const Index* operator->() const { return &index_; }

  friend constexpr bool operator==(OptionalIndex, OptionalIndex) = default;

 private:
  static constexpr Index none{-1};
  Index index_ = none;
};

}  // namespace heddle
