#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/assert.hpp"

namespace heddle {

/// An array of which most elements may never be touched: those of a page are made, with their
/// default value, when one of them is first asked for in a way that could change it. A word for
/// each page, and the pages in use. Not thread-safe.
template <class T, std::size_t PageCount = 64>
class PagedArray {
 public:
  PagedArray() = default;
  explicit PagedArray(std::size_t size) : size_(size), pages_((size + PageCount - 1) / PageCount) {}

  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] T& operator[](std::size_t index) {
    HEDDLE_DEBUG(index < size_, "element {} of {}", index, size_);
    std::unique_ptr<Page>& page = pages_[index / PageCount];
    if (!page) page = std::make_unique<Page>();
    return (*page)[index % PageCount];
  }
  /// The default value, where nobody has asked to change it.
  [[nodiscard]] const T& operator[](std::size_t index) const {
    static const T untouched{};
    HEDDLE_DEBUG(index < size_, "element {} of {}", index, size_);
    const std::unique_ptr<Page>& page = pages_[index / PageCount];
    return page ? (*page)[index % PageCount] : untouched;
  }

  /// The elements that were touched, and others of their pages, in order.
  template <class Use>
  void for_each_touched(const Use& use) {
    for (const std::unique_ptr<Page>& page : pages_) {
      if (!page) continue;
      for (T& element : *page) use(element);
    }
  }
  template <class Use>
  void for_each_touched(const Use& use) const {
    for (const std::unique_ptr<Page>& page : pages_) {
      if (!page) continue;
      for (const T& element : *page) use(element);
    }
  }

  /// Nothing is left.
  void clear() { *this = PagedArray(); }

 private:
  using Page = std::array<T, PageCount>;

  std::size_t size_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace heddle
