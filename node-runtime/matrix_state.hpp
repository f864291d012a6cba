#pragma once

#include <memory>

#include "node-runtime/matrix.hpp"

namespace heddle {

class EngineLink;

/// What a matrix is on this node. Made by Node, or by those who plan with matrices of no node;
/// final, but for `id`, once a handle names it.
struct MatrixState {
  MatrixState() = default;
  MatrixState(const MatrixState&) = delete;
  MatrixState& operator=(const MatrixState&) = delete;
  ~MatrixState();

  Node* node = nullptr;              ///< null: of a simulation
  std::shared_ptr<EngineLink> link;  ///< null: of a simulation, or only planned
  protocol::MatrixId id;
  MatrixSpec spec;
};

}  // namespace heddle
