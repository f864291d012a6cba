#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/assert.hpp"

namespace heddle {

/// Sparse array: a page is allocated, with default values, on the first non-const access to one of
/// its elements. Costs a pointer per page plus the allocated pages. Not thread-safe.
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
  /// Default value if the page is not allocated.
  [[nodiscard]] const T& operator[](std::size_t index) const {
    static const T untouched{};
    HEDDLE_DEBUG(index < size_, "element {} of {}", index, size_);
    const std::unique_ptr<Page>& page = pages_[index / PageCount];
    return page ? (*page)[index % PageCount] : untouched;
  }

  /// All elements of allocated pages, in order.
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

  void clear() { *this = PagedArray(); }

 private:
  using Page = std::array<T, PageCount>;

  std::size_t size_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace heddle
