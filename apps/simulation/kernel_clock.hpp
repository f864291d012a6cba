#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel_case.hpp"

namespace heddle {

/// What runs a kernel.
enum class Runner : std::uint8_t {
  worker,  ///< of the host, the others at work too
  device   ///< alone
};
inline constexpr std::size_t runner_count = 2;

/// Who knows how long kernels take on a machine. Asked once for each case of a run.
class KernelClock {
 public:
  KernelClock() = default;
  KernelClock(const KernelClock&) = delete;
  KernelClock& operator=(const KernelClock&) = delete;
  virtual ~KernelClock() = default;

  /// 0 where it cannot run, or nobody knows.
  [[nodiscard]] virtual double seconds(const KernelCase& what, Runner runner) = 0;
  /// How tasks of that case differ, where that was recorded: what each took of their mean.
  [[nodiscard]] virtual std::vector<float> spread(const KernelCase& /*what*/,
                                                  Runner /*runner*/) const {
    return {};
  }
  /// What each of some workers on such a machine took over what is usual for its tasks, one list
  /// for each time that they were seen at work. Empty: nobody has seen any.
  [[nodiscard]] virtual std::vector<std::vector<double>> worker_paces() const { return {}; }
  /// Where the times come from that it has told: "by the machine file's rates".
  [[nodiscard]] virtual std::string source() const = 0;
};

}  // namespace heddle
