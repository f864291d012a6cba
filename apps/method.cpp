#include "apps/method.hpp"

#include <fmt/core.h>
#include <utility>

#include "algorithms/checks/sample.hpp"
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

std::string sampled_text(bool keeps_copy, bool is_generated) {
  return fmt::format("{} random vectors; {}", sample_count,
                     keeps_copy     ? "a copy of the matrix is kept for it"
                     : is_generated ? "the matrix is generated once more"
                                    : "the input is read once more");
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
