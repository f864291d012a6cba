#include "tests/threads/failing_allocation.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constexpr std::int64_t never = -1;
thread_local std::int64_t successes_left = never;

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t size) {
  if (successes_left != never && successes_left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;  // NOLINT(*-no-malloc)
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);  // NOLINT(*-no-malloc)
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);  // NOLINT(*-no-malloc)
}

bool heddle::testing::FailingAllocation::is_available() {
  return true;
}

#else

bool heddle::testing::FailingAllocation::is_available() {
  return false;
}

#endif

namespace heddle::testing {

FailingAllocation::FailingAllocation(std::int64_t successes) {
  successes_left = successes;
}

FailingAllocation::~FailingAllocation() {
  successes_left = never;
}

}  // namespace heddle::testing
