#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "node-runtime/device/emulated/gpu_words.hpp"
#include "node-runtime/device/emulated/hardware_model.hpp"

namespace heddle {

/// The turns of the processes that share an emulated GPU without the Multi-Process Service: one
/// process's operations at a time, and `turn_us` until the GPU has turned to another one's. A
/// process keeps its turn for a time slice while others wait.
///
/// No deadlock: what holds a turn is a copy or a kernel, which waits for no other operation. A
/// process that has died with its turn is noticed within 10 ms.
///
/// Thread-safe.
class EmulatedTurns {
 public:
  /// No sharers: nobody waits.
  EmulatedTurns() = default;
  /// `sharer`: this process among them, from 0. `words` outlive it.
  EmulatedTurns(GpuWords& words, std::int32_t sharer, double turn_us);

  /// Waits for this process's turn. Returns false, without entering, if `is_interrupted` became
  /// true, which is looked at every 10 ms.
  [[nodiscard]] bool enter(const std::function<bool()>& is_interrupted);
  /// When the GPU has turned to this process; for one that has entered.
  [[nodiscard]] DeviceClock::time_point ready() const;
  void leave();

 private:
  [[nodiscard]] bool is_alive(std::uint64_t holder) const;
  [[nodiscard]] bool take(std::uint64_t known);

  GpuWords* words_ = nullptr;
  std::uint64_t own_ = 0;  ///< counted from 1
  std::chrono::nanoseconds turn_{};
};

}  // namespace heddle
