#include "apps/method.hpp"

#include <fmt/core.h>
#include <utility>

#include "base/error.hpp"
#include "config/problem.hpp"
#include "node-runtime/matrix_state.hpp"

namespace heddle {

std::unique_ptr<Method> make_method(Node& node, Problem& problem) {
  switch (problem.wanted().factorization) {
    case config::Factorization::cholesky:
      break;
    case config::Factorization::qr:
      return make_qr(node, problem);
  }
  return make_cholesky(node, problem);
}

Matrix<double> Shadows::operator()(const MatrixSpec& spec) const {
  if (spec.temporary) return node_.matrix<double>(spec);
  auto state = std::make_shared<MatrixState>();
  state->node = &node_;
  state->id = protocol::MatrixId{next_++};
  state->spec = spec;
  check_tile_count(state->spec.layout);
  return Matrix<double>(std::move(state));
}

}  // namespace heddle
