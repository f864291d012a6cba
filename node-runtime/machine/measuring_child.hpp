#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/child_process.hpp"
#include "kernels/cpu/blas.hpp"
#include "node-runtime/machine/kernel_sets.hpp"

namespace heddle {

/// Seconds of one run of each kernel before any was measured.
inline constexpr ComparedValues unmeasured = [] {
  ComparedValues seconds{};
  seconds.fill(std::numeric_limits<double>::infinity());
  return seconds;
}();

/// The shorter time of each kernel.
[[nodiscard]] ComparedValues least_of(const ComparedValues& a, const ComparedValues& b);

/// A forked process that loads OpenBLAS with given options and measures tile kernels on request,
/// one message each way at a time.
class MeasuringChild {
 public:
  /// What the child says when it has loaded the library, texts ended by a zero.
  struct Hello {
    bool ok = false;
    std::array<char, 64> version{};
    std::array<char, 64> core_name{};
    std::array<char, 512> configuration{};
    std::array<char, 1024> error{};
  };
  /// How long the parent waits for any one message.
  static constexpr std::chrono::seconds patience{3};

  /// Forks. Throws Error(usage) if the system refuses. `tile` 0: only the greeting is wanted.
  MeasuringChild(const BlasOptions& options, std::int64_t tile);

  /// Waits for the child's hello; false when it died, was silent, or could not load the library.
  bool greet();
  /// The same; throws Error(usage) with the child's reason, or Error(internal) if it has none.
  void greet_or_throw();
  [[nodiscard]] const Hello& hello() const { return hello_; }

  /// One turn on that hardware thread: the best of two runs of each kernel. Nothing when the child
  /// died or was silent.
  [[nodiscard]] std::optional<ComparedValues> measure(std::int32_t hardware_thread);

 private:
  ChildProcess process_;
  bool greeted_ = false;
  Hello hello_;
};

}  // namespace heddle
