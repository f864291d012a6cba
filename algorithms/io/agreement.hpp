#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/node.hpp"

namespace heddle {

/// An error that all nodes know and throw: they can stop in good order, and one of them tells it.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Throws AgreedError on all nodes when any of them has an error: that with the smallest `order`
/// (compared element by element, as many on every node), of equals that of the lowest node. The
/// message names the node where it is not in `order`, unless there is only one node. Collective.
void agree(Node& node, const std::optional<Error>& mine, std::vector<double> order = {});

/// Runs what only this node does, or each for itself, and agrees on what went wrong. Collective.
template <class Work>
void together(Node& node, const Work& work) {
  std::optional<Error> trouble;
  try {
    work();
  } catch (const Error& error) {
    if (node.engine().failed()) throw;
    trouble = error;
  }
  agree(node, trouble);
}

/// The text of every node, by rank. Collective; for short texts.
[[nodiscard]] std::vector<std::string> gather_texts(Node& node, const std::string& mine);

/// Sums or maxima of a few values over all nodes. Collective.
[[nodiscard]] double reduce(Node& node, double value, Reduction reduction);

}  // namespace heddle
