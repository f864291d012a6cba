#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "node-runtime/collectives/execution/compiled_schedule.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

namespace heddle::replay {

/// The compiled schedules of all ranks of an operation in little memory, with each send's receive.
class VirtualSchedules {
 public:
  /// What a rank does at once, as CompiledSchedule::Deed.
  struct Deed {
    collectives::Step::Kind kind = collectives::Step::Kind::copy;
    std::int32_t rank = 0;
    std::int32_t match = -1;    ///< of a send: the deed that receives it; of a receive its send
    std::int32_t channel = -1;  ///< of a send or receive: a number for its pair of ranks
    std::int32_t inputs = 1;    ///< of a reduction
    std::int32_t befores = 0;   ///< deeds that it comes after
    std::int32_t first_block = 0;
    std::int32_t first_follower = 0;  ///< the next deed has the end of both
  };

  /// The most steps of all ranks together: a bound of the memory, about 150 bytes for each.
  static constexpr std::int64_t deeds_max = 8'000'000;

  using Make = std::function<collectives::Schedule(collectives::Rank)>;
  /// `make`: the schedule of each rank. Throws Error(usage) beyond deeds_max.
  VirtualSchedules(std::int32_t ranks, const Make& make);

  [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(begins_.size()) - 1; }
  [[nodiscard]] std::int32_t deeds() const { return static_cast<std::int32_t>(deeds_.size()) - 1; }
  [[nodiscard]] const Deed& deed(std::int32_t deed) const { return at(deed); }
  /// Pairs of ranks with messages, in each direction.
  [[nodiscard]] std::int32_t channels() const { return channels_; }
  /// Deeds of a rank: from begin(rank) on, before begin(rank + 1).
  [[nodiscard]] std::int32_t begin(std::int32_t rank) const {
    return begins_[static_cast<std::size_t>(rank)];
  }
  /// The blocks of its steps.
  [[nodiscard]] std::span<const std::int32_t> blocks(std::int32_t deed) const {
    return std::span(blocks_).subspan(
        static_cast<std::size_t>(at(deed).first_block),
        static_cast<std::size_t>(at(deed + 1).first_block - at(deed).first_block));
  }
  /// Deeds of the same rank that come after it.
  [[nodiscard]] std::span<const std::int32_t> followers(std::int32_t deed) const {
    return std::span(followers_)
        .subspan(static_cast<std::size_t>(at(deed).first_follower),
                 static_cast<std::size_t>(at(deed + 1).first_follower - at(deed).first_follower));
  }

 private:
  struct Message;

  [[nodiscard]] const Deed& at(std::int32_t deed) const {
    return deeds_[static_cast<std::size_t>(deed)];
  }
  void add(const collectives::CompiledSchedule& schedule, std::int32_t rank,
           std::vector<Message>& sends, std::vector<Message>& receives);
  void match(std::vector<Message> sends, std::vector<Message> receives);

  std::vector<Deed> deeds_;  ///< of all ranks; then one that has the ends
  std::vector<std::int32_t> blocks_;
  std::vector<std::int32_t> followers_;
  std::vector<std::int32_t> begins_;
  std::int32_t channels_ = 0;
};

}  // namespace heddle::replay
