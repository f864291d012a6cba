#pragma once

#include <span>

#include "node-runtime/protocol/pool_plan.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// Plans while a program is walked.
class PlanListener final : public ProgramListener {
 public:
  explicit PlanListener(protocol::PoolPlan& plan) : plan_(plan) {}

  void insert(const Kernel& /*kernel*/, const TaskOptions& /*options*/,
              std::span<const protocol::Access> accesses) override {
    plan_.append(accesses);
  }
  void announce(const protocol::Access& access, NodeId reader, std::int32_t /*priority*/) override {
    plan_.append_alien_reader(access, reader);
  }
  void release(const protocol::Access& access) override { plan_.release(access); }

 private:
  protocol::PoolPlan& plan_;
};

}  // namespace heddle
