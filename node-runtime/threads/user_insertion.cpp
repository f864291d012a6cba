#include "node-runtime/threads/user_insertion.hpp"

#include <fmt/core.h>

#include "base/error.hpp"
#include "node-runtime/threads/engine.hpp"

namespace heddle {

void UserInsertion::insert(const Kernel& kernel, const TaskOptions& options,
                           std::span<const protocol::Access> accesses) {
  engine_.wait_for_turn(job_);
  engine_.deliver([&](protocol::Protocol& protocol, protocol::Actions& actions) {
    protocol.append(*job_.handle, work_of(kernel, options), options.priority, accesses, actions);
  });
}

void UserInsertion::announce(const protocol::Access& /*access*/, NodeId /*reader*/,
                             std::int32_t /*priority*/) {
  throw Error(
      ErrorCode::usage,
      fmt::format("'{}' announces a reader; every node inserts all tasks of a user's stream",
                  job_.name));
}

void UserInsertion::release(const protocol::Access& access) {
  engine_.deliver([&](protocol::Protocol& protocol, protocol::Actions& actions) {
    protocol.release(*job_.handle, access, actions);
  });
}

}  // namespace heddle
