#include "kernels/kernels.hpp"

#include <algorithm>

namespace heddle {

const Kernel* kernel_named(std::string_view name) {
  const auto found = std::ranges::find(all_kernels, name, &Kernel::name);
  return found == all_kernels.end() ? nullptr : *found;
}

}  // namespace heddle
