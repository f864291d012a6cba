#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace heddle::testing {

/// Memory that nobody has touched, in pages of the usual size.
class FreshMemory {
 public:
  explicit FreshMemory(std::size_t bytes)
      : bytes_(bytes),
        address_(static_cast<std::uint8_t*>(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_NE(static_cast<void*>(address_), MAP_FAILED);
  }
  FreshMemory(const FreshMemory&) = delete;
  FreshMemory& operator=(const FreshMemory&) = delete;
  ~FreshMemory() { ::munmap(address_, bytes_); }

  [[nodiscard]] static std::size_t page_bytes() {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  [[nodiscard]] std::uint8_t* address() const { return address_; }
  /// No huge ones, of which one touch would bring 512.
  void keep_pages_small() const { ::madvise(address_, bytes_, MADV_NOHUGEPAGE); }
  /// Pages that are there, of those that begin in a part of it.
  [[nodiscard]] std::size_t pages(std::size_t from, std::size_t to) const {
    std::vector<unsigned char> there((to - from + page_bytes() - 1) / page_bytes());
    EXPECT_EQ(::mincore(address_ + from, to - from, there.data()), 0);
    return static_cast<std::size_t>(
        std::ranges::count_if(there, [](unsigned char one) { return (one & 1U) != 0; }));
  }
  /// The system can give it pages before they are touched (Linux 5.14). Populates the first one.
  [[nodiscard]] bool can_populate() const {
    constexpr int populate_for_writing = 23;
    return ::madvise(address_, page_bytes(), populate_for_writing) == 0 || errno != EINVAL;
  }

 private:
  std::size_t bytes_;
  std::uint8_t* address_;
};

}  // namespace heddle::testing
