#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/child_process.hpp"
#include "kernels/cpu/blas.hpp"

namespace heddle {

/// Seconds of one run of each tile kernel.
struct KernelSeconds {
  double gemm = std::numeric_limits<double>::infinity();
  double syrk = std::numeric_limits<double>::infinity();
  double trsm = std::numeric_limits<double>::infinity();
  double potrf = std::numeric_limits<double>::infinity();
};

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
  [[nodiscard]] std::optional<KernelSeconds> measure(std::int32_t hardware_thread);

 private:
  ChildProcess process_;
  bool greeted_ = false;
  Hello hello_;
};

}  // namespace heddle
