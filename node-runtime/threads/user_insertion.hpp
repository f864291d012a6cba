#pragma once

#include <cstdint>
#include <span>

#include "node-runtime/threads/program.hpp"

namespace heddle {

class Engine;
struct JobRecord;

/// What a user's thread inserts: each insertion waits until the job may go on, then takes the
/// engine's lock. Thread: the user's, one at a time.
class UserInsertion final : public ProgramListener {
 public:
  UserInsertion(Engine& engine, JobRecord& job) : engine_(engine), job_(job) {}

  /// Throws what made the node fail, and Error(usage) after Node::stop().
  void insert(const Kernel& kernel, const TaskOptions& options,
              std::span<const protocol::Access> accesses) override;
  /// Throws Error(usage): every node inserts all tasks of a user's stream.
  void announce(const protocol::Access& access, NodeId reader, std::int32_t priority) override;
  void release(const protocol::Access& access) override;

 private:
  template <class Events>
  void tell(const Events& events);

  Engine& engine_;
  JobRecord& job_;
};

}  // namespace heddle
