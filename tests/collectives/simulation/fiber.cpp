#include "tests/collectives/simulation/fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <utility>

#include "base/assert.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace heddle::testing {
namespace {

/// The address sanitizer must know which stack is in use.
void leaving([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* to,
             [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake_stack, to, bytes);
#endif
}
void arrived([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** from,
             [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
#endif
}

}  // namespace

FiberStacks::~FiberStacks() {
  for (std::byte* const stack : free_) ::munmap(stack, bytes);
}

std::byte* FiberStacks::take() {
  if (!free_.empty()) {
    std::byte* const stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* const made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  HEDDLE_CHECK(made != MAP_FAILED, "no stack of {} bytes for a fiber", bytes);
  return static_cast<std::byte*>(made);
}

Fiber::Fiber(FiberStacks& stacks, std::function<void()> body)
    : stacks_(stacks), body_(std::move(body)), stack_(stacks.take()) {
  HEDDLE_CHECK(::getcontext(&own_) == 0, "no context for a fiber");
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = FiberStacks::bytes;
  own_.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32U));
}

Fiber::~Fiber() {
  HEDDLE_CHECK(is_over_, "a fiber ends while its body runs, with {} exceptions",
               exceptions_.uncaught);
  stacks_.give_back(stack_);
}

/// makecontext() hands over numbers of 32 bits.
void Fiber::enter(std::uint32_t low, std::uint32_t high) {
  const std::uintptr_t address = std::uintptr_t{low} | (std::uintptr_t{high} << 32U);
  reinterpret_cast<Fiber*>(address)->run();  // NOLINT(performance-no-int-to-ptr): it was one
}

void Fiber::run() {
  arrived(nullptr, &resumer_stack_, &resumer_bytes_);
  body_();
  is_over_ = true;
  swap_exceptions();
  leaving(nullptr, resumer_stack_, resumer_bytes_);
  ::setcontext(&resumer_);
}

void Fiber::swap_exceptions() {
  auto* const current = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  std::swap(*current, exceptions_);
}

void Fiber::resume() {
  void* fake_stack = nullptr;
  swap_exceptions();
  leaving(&fake_stack, stack_, FiberStacks::bytes);
  ::swapcontext(&resumer_, &own_);
  arrived(fake_stack, nullptr, nullptr);
}

void Fiber::yield() {
  swap_exceptions();
  leaving(&fake_stack_, resumer_stack_, resumer_bytes_);
  ::swapcontext(&own_, &resumer_);
  arrived(fake_stack_, &resumer_stack_, &resumer_bytes_);
}

}  // namespace heddle::testing
