#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ucontext.h>
#include <vector>

namespace heddle::testing {

/// Stacks of fibers, kept for later ones.
class FiberStacks {
 public:
  static constexpr std::size_t bytes = std::size_t{256} << 10U;

  FiberStacks() = default;
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  ~FiberStacks();

  [[nodiscard]] std::byte* take();
  void give_back(std::byte* stack) { free_.push_back(stack); }

 private:
  std::vector<std::byte*> free_;
};

/// A caller that runs on a stack of its own, on the thread that resumes it, until it yields or its
/// body returns. Exceptions stay inside: each fiber has its own that are being caught.
///
/// The body must have returned when the fiber ends. Thread: one for all fibers.
class Fiber {
 public:
  /// `body` must not throw.
  Fiber(FiberStacks& stacks, std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  [[nodiscard]] bool is_over() const { return is_over_; }
  /// Runs the body until it yields or returns. Not by a fiber.
  void resume();
  /// By its body: returns when it is resumed.
  void yield();

 private:
  /// What the C++ runtime keeps for each thread (Itanium C++ ABI, 2.2.2).
  struct Exceptions {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  static void enter(std::uint32_t low, std::uint32_t high);
  void swap_exceptions();
  void run();

  FiberStacks& stacks_;
  std::function<void()> body_;
  std::byte* stack_;
  ucontext_t own_{};
  ucontext_t resumer_{};
  Exceptions exceptions_;  ///< of whoever does not run: the fiber, or who has resumed it
  bool is_over_ = false;
  // For the address sanitizer.
  void* fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_bytes_ = 0;
};

}  // namespace heddle::testing
