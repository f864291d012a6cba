#include "tests/fine/counted_allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

std::atomic<std::int64_t> count{0};

}  // namespace

void* operator new(std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;  // NOLINT(*-no-malloc)
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);  // NOLINT(*-no-malloc)
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);  // NOLINT(*-no-malloc)
}

namespace heddle::test {

std::optional<std::int64_t> allocations_so_far() {
  return count.load(std::memory_order_relaxed);
}

}  // namespace heddle::test

#else

namespace heddle::test {

std::optional<std::int64_t> allocations_so_far() {
  return std::nullopt;
}

}  // namespace heddle::test

#endif
