#pragma once

#include <span>
#include <utility>

#include "node-runtime/protocol/pool_plan.hpp"
#include "node-runtime/threads/divided_cases.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

/// Plans while a program is walked.
class PlanListener final : public ProgramListener {
 public:
  explicit PlanListener(protocol::PoolPlan& plan) : plan_(plan) {}

  /// Adds the node's tasks that can be divided to `cases`, too.
  void find_divided(NodeId node, DividedCases& cases, DividedCases::ShapeOf shape_of) {
    node_ = node;
    cases_ = &cases;
    shape_of_ = std::move(shape_of);
  }

  void insert(const Kernel& kernel, const TaskOptions& options,
              std::span<const protocol::Access> accesses) override {
    plan_.append(accesses);
    if (cases_ == nullptr || accesses.front().home.node != node_) return;
    cases_->add(kernel, options.parameters, accesses, shape_of_);
  }
  void release(const protocol::Access& access) override { plan_.release(access); }

 private:
  protocol::PoolPlan& plan_;
  NodeId node_;
  DividedCases* cases_ = nullptr;
  DividedCases::ShapeOf shape_of_;
};

}  // namespace heddle
