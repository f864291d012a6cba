#pragma once

#include <cstdint>

namespace heddle::testing {

/// While it lives, operator new throws std::bad_alloc once: after `successes` calls on this thread.
/// One at a time.
class FailingAllocation {
 public:
  /// False under sanitizers, which have an operator new of their own.
  static bool is_available();

  explicit FailingAllocation(std::int64_t successes);
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  ~FailingAllocation();
};

}  // namespace heddle::testing
