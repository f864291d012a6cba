#include <algorithm>
#include <utility>

#include "node-runtime/collectives/execution/execution.hpp"

namespace heddle::collectives {

bool Execution::start_copy_works(std::int64_t fragment, std::int32_t deed) {
  const Step& step =
      task_.schedule->step(task_.schedule->deeds()[static_cast<std::size_t>(deed)].first);
  const std::byte* const from = memory(step.from.front(), step.block, fragment);
  std::vector<p2p::DeviceWork> works =
      task_.works(step, from, memory(step.to, step.block, fragment));
  if (works.empty()) return false;
  run_step(step, fragment);  // what the host has of it
  std::ranges::reverse(works);
  const std::int64_t ticket = ticket_of(fragment, deed);
  copy_works_[ticket] = std::move(works);
  return continue_copy_works(ticket);
}

bool Execution::continue_copy_works(std::int64_t ticket) {
  const auto found = copy_works_.find(ticket);
  if (found == copy_works_.end()) return false;
  if (found->second.empty()) {
    copy_works_.erase(found);
    return false;
  }
  p2p::DeviceWork next = std::move(found->second.back());
  found->second.pop_back();
  ++messages_;
  courier_.work(std::move(next), ticket);
  return true;
}

}  // namespace heddle::collectives
