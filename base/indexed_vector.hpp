#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace heddle {

/// A vector whose elements are named by a strong index type (base/index.hpp): elements 0, 1, ...
/// belong to Index{0}, Index{1}, ...; another kind of index does not compile.
template <class Index, class T>
class IndexedVector {
 public:
  IndexedVector() = default;
  IndexedVector(std::initializer_list<T> elements) : elements_(elements) {}
  /// `count` elements, equal to `value`.
  explicit IndexedVector(typename Index::rep count, const T& value = T())
      : elements_(static_cast<std::size_t>(count), value) {}

  [[nodiscard]] decltype(auto) operator[](Index index) { return elements_[checked(index)]; }
  [[nodiscard]] decltype(auto) operator[](Index index) const { return elements_[checked(index)]; }

  [[nodiscard]] std::size_t size() const { return elements_.size(); }
  [[nodiscard]] bool empty() const { return elements_.empty(); }
  /// The index of the next element that push_back() adds.
  [[nodiscard]] Index end_index() const {
    return Index{static_cast<typename Index::rep>(elements_.size())};
  }
  [[nodiscard]] bool contains(Index index) const { return Index{} <= index && index < end_index(); }

  Index push_back(T element) {
    elements_.push_back(std::move(element));
    return end_index() - 1;
  }
  void resize(typename Index::rep count) { elements_.resize(static_cast<std::size_t>(count)); }

  [[nodiscard]] auto begin() { return elements_.begin(); }
  [[nodiscard]] auto end() { return elements_.end(); }
  [[nodiscard]] auto begin() const { return elements_.begin(); }
  [[nodiscard]] auto end() const { return elements_.end(); }
  [[nodiscard]] const std::vector<T>& elements() const { return elements_; }

  friend bool operator==(const IndexedVector&, const IndexedVector&) = default;

 private:
  [[nodiscard]] std::size_t checked(Index index) const {
    HEDDLE_DEBUG(contains(index), "element {} of {}", index.value(), elements_.size());
    return static_cast<std::size_t>(index.value());
  }

  std::vector<T> elements_;
};

}  // namespace heddle
