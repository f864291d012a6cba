#include "node-runtime/device/populate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace heddle {
namespace {

/// Memory that nobody has touched.
class Fresh {
 public:
  explicit Fresh(std::size_t bytes)
      : bytes_(bytes),
        address_(static_cast<std::uint8_t*>(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;
  ~Fresh() { ::munmap(address_, bytes_); }

  [[nodiscard]] std::uint8_t* address() const { return address_; }
  /// Pages that are there, of those that begin in a part of it.
  [[nodiscard]] std::size_t pages(std::size_t from, std::size_t to) const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> there((to - from + page - 1) / page);
    EXPECT_EQ(::mincore(address_ + from, to - from, there.data()), 0);
    return static_cast<std::size_t>(
        std::ranges::count_if(there, [](unsigned char one) { return (one & 1U) != 0; }));
  }

 private:
  std::size_t bytes_;
  std::uint8_t* address_;
};

TEST(PopulatePages, gives_pages_to_all_of_it_and_keeps_what_is_there) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = std::size_t{33} << 20;
  const Fresh memory(bytes);
  memory.address()[page + 7] = 5;
  populate_pages(memory.address() + 100, bytes - 200);
  if (::madvise(memory.address(), page, 23) != 0 && errno == EINVAL) {
    GTEST_SKIP() << "this system cannot populate pages";
  }
  EXPECT_EQ(memory.pages(0, bytes), bytes / page);
  EXPECT_EQ(memory.address()[page + 7], 5);
  EXPECT_EQ(memory.address()[bytes - 1], 0);
}

TEST(PopulatePages, leaves_what_lies_beside_it) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const Fresh memory(64 * page);
  ::madvise(memory.address(), 64 * page, MADV_NOHUGEPAGE);
  populate_pages(memory.address() + 8 * page, 8 * page);
  populate_pages(memory.address() + 40 * page, 0);
  EXPECT_EQ(memory.pages(0, 8 * page), 0U);
  EXPECT_EQ(memory.pages(16 * page, 64 * page), 0U);
}

}  // namespace
}  // namespace heddle
