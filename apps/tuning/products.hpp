#pragma once

#include <cstdint>
#include <string>

#include "apps/tuning/effort.hpp"
#include "apps/tuning/operands.hpp"
#include "kernels/cuda/product_choice.hpp"
#include "node-runtime/device/devices.hpp"

namespace heddle::tuning {

/// What large products should run on on GPU number `gpu`: for some sizes each kernel that the
/// library offers runs briefly, the fastest ones and the library's own choice run until they meet
/// the power limit, and the fastest of these is chosen; the library's where none is faster by one
/// percent. Each runs on a device of its own, made for it; no other device of this process holds
/// the GPU's memory meanwhile. Empty where nothing could be measured.
[[nodiscard]] kernel::cuda::ProductChoices measure_products(std::int32_t gpu,
                                                            const std::string& name,
                                                            const NormalValues& normal,
                                                            Effort& effort);

/// Choices by rising size without those that repeat the one before them.
[[nodiscard]] kernel::cuda::ProductChoices without_repetitions(
    const kernel::cuda::ProductChoices& choices);

}  // namespace heddle::tuning
