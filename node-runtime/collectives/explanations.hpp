#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "node-runtime/collectives/call/call.hpp"
#include "node-runtime/collectives/schedule/choice.hpp"

namespace heddle::collectives {

/// "15.2 us, by order: ranks 15.2 us, places 4.1 us; not host chain: 30.1 us, ...": what a choice
/// is predicted to take, and what else there was.
[[nodiscard]] std::string describe(const CollectiveChoice& choice);

/// Explains the operations of a node's groups: the first one of each kind of call, that is of each
/// operation, count, type, root and order.
///
/// Thread: any. `print` is called by one at a time.
class Explanations {
 public:
  /// Kinds that are explained.
  static constexpr std::size_t kinds_max = 256;
  explicit Explanations(std::function<void(const std::string&)> print) : print_(std::move(print)) {}

  /// An operation was done in `seconds` as `how` says, with the choice for it. `why_not`: why
  /// another way could not be taken; may be empty.
  void add(const Call& call, const std::string& how, const CollectiveChoice& choice, double seconds,
           const std::string& why_not = {});

 private:
  std::mutex mutex_;
  std::function<void(const std::string&)> print_;
  std::set<std::string> kinds_;  ///< that were explained
};

}  // namespace heddle::collectives
