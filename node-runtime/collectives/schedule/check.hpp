#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

/// Whether the schedules of all ranks do together what their operation is.
namespace heddle::collectives {

/// A value of an element, by how it came about.
using Value = Index<struct ValueTag, std::int32_t>;

/// Values that are equal if and only if they came about in the same way: the bracket counts.
class Values {
 public:
  /// What a rank has in its input, in a block.
  [[nodiscard]] Value input(Rank rank, std::int32_t block);
  [[nodiscard]] Value reduced(Value left, Value right);
  /// "((0 1) 2) of block 3": the ranks in their brackets.
  [[nodiscard]] std::string text(Value value) const;

 private:
  struct Origin {
    std::int32_t left = 0;   ///< an input's rank, or a value
    std::int32_t right = 0;  ///< an input's block, or a value
    bool is_input = true;
    friend auto operator<=>(const Origin&, const Origin&) = default;
  };
  [[nodiscard]] Value number_of(const Origin& origin);
  [[nodiscard]] std::string bracket(Value value) const;

  std::vector<Origin> origins_;
  std::map<Origin, Value> numbers_;
};

/// The value that a rank's output must have in a block when all is done; nothing: any, or none.
using WantedValue = std::function<std::optional<Value>(Rank rank, std::int32_t block, Values&)>;

/// Runs `schedules`, of rank 0, 1, ..., with a message of `blocks` blocks symbolically, and proves
/// for every order in which their steps may run:
///
/// - a step comes after steps that are listed before it, so that a rank has no circle; nor do all
/// ranks together;
/// - sends and receives of each pair of ranks are as many, of the same blocks in the same order and
///   in the same messages;
/// - no reduction has to do with the host cache, whose slots are in other memory than the rest;
/// - what a step reads was written by a step that it comes after, and nothing is written twice: so
///   no slot and no output is overwritten before it is read; slots are within bounds;
/// - in the end each output has its value.
///
/// What is wrong, with the rank and the step; empty: nothing.
[[nodiscard]] std::string check_schedules(const std::vector<Schedule>& schedules,
                                          std::int32_t blocks, const WantedValue& wanted);

}  // namespace heddle::collectives
