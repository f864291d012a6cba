#include "node-runtime/threads/user_insertion.hpp"

#include <exception>
#include <fmt/core.h>

#include "base/error.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/threads/engine.hpp"

namespace heddle {

/// Memory that lacks in the protocol may leave it changed in part. Nothing can go on from there, so
/// that the node fails, by name on all nodes.
template <class Events>
void UserInsertion::tell(const Events& events) {
  try {
    engine_.deliver(events);
  } catch (const std::exception& error) {
    engine_.fail(as_error(error));
    throw Error(*engine_.failure());
  }
}

void UserInsertion::insert(const Kernel& kernel, const TaskOptions& options,
                           std::span<const protocol::Access> accesses) {
  engine_.wait_for_turn(job_);
  tell([&](protocol::Protocol& protocol, protocol::Actions& actions) {
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
  tell([&](protocol::Protocol& protocol, protocol::Actions& actions) {
    protocol.release(*job_.handle, access, actions);
  });
}

}  // namespace heddle
