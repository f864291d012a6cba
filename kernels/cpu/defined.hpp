#pragma once

#include <string_view>

#include "kernels/cuda/definitions.hpp"

namespace heddle::kernel {

/// A kernel of the list (kernels/kernels.hpp). An emulated device computes on the processor, too:
/// its definition is the host's.
[[nodiscard]] consteval Kernel defined(std::string_view name, Kernel::Function host,
                                       decltype(Kernel::cuda) cuda,
                                       decltype(Kernel::fine) fine = nullptr,
                                       decltype(Kernel::flops) flops = nullptr,
                                       decltype(Kernel::failing_element) failing = nullptr) {
  return {name, host, host, cuda, fine, flops, failing};
}

}  // namespace heddle::kernel
