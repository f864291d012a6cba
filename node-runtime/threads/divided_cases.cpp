#include "node-runtime/threads/divided_cases.hpp"

#include <bit>
#include <cstdint>

#include "kernels/fine/fine_tasks.hpp"

namespace heddle {

void DividedCases::add(const Kernel& kernel, const KernelParameters& parameters,
                       std::span<const protocol::Access> accesses, const ShapeOf& shape_of) {
  if (kernel.fine == nullptr || accesses.size() > FineTask::accesses_max) return;
  const auto shape = [&](const protocol::Access& access) { return shape_of(access.tile); };
  const Case one{CaseKey::of(kernel, parameters, accesses, shape), accesses.front().home.place};
  Case& last = last_[std::bit_cast<std::uintptr_t>(&kernel) / alignof(Kernel) % last_.size()];
  if (last == one) return;
  last = one;
  all_.insert(one);
}

}  // namespace heddle
