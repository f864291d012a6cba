#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/schedule/places.hpp"

/// What one rank does in a collective operation, as data (000 sections 5.2.2 and 5.2.3).
namespace heddle::collectives {

/// How a message is cut: blocks one behind the other, each of them in fragments.
///
/// Fragment f of a block has its elements [f, f + 1) * fragment_elements; blocks that end before
/// have no such fragment, and a step on it does nothing, on all ranks alike.
class Cut {
 public:
  /// `counts`: elements of each block. `fragment_elements` at least 1; otherwise, and for a
  /// negative count, throws Error(usage).
  Cut(std::span<const std::int64_t> counts, std::int64_t fragment_elements);

  [[nodiscard]] std::int32_t blocks() const {
    return static_cast<std::int32_t>(begins_.size()) - 1;
  }
  /// Fragments of the longest block; 0 without an element.
  [[nodiscard]] std::int64_t fragments() const { return fragments_; }

  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    [[nodiscard]] std::int64_t count() const { return end - begin; }
  };
  /// Elements of a block, counted from the message's first one, and of one of its fragments.
  [[nodiscard]] Range block(std::int32_t block) const;
  [[nodiscard]] Range fragment(std::int32_t block, std::int64_t fragment) const;

 private:
  std::vector<std::int64_t> begins_;  ///< of the blocks; then the end
  std::int64_t fragment_elements_;
  std::int64_t fragments_ = 0;
};

/// Where a fragment of a block is on a rank: at its place in the operation's own memory, or in a
/// slot, which holds one. Slots are where the rank's memory is; those of the host cache are in host
/// memory, whatever device the rank's memory is on.
struct Spot {
  enum class Memory : std::uint8_t { input, output, slot, host_cache };
  Memory memory = Memory::input;
  std::int32_t slot = 0;

  [[nodiscard]] static Spot in_input() { return {Memory::input, 0}; }
  [[nodiscard]] static Spot in_output() { return {Memory::output, 0}; }
  [[nodiscard]] static Spot in_slot(std::int32_t slot) { return {Memory::slot, slot}; }
  [[nodiscard]] static Spot in_host_cache(std::int32_t slot) { return {Memory::host_cache, slot}; }
  friend auto operator<=>(const Spot&, const Spot&) = default;
};

/// What is done with each fragment of a block.
struct Step {
  enum class Kind : std::uint8_t {
    copy,     ///< `to` := `from`
    send,     ///< `from` to the peer
    receive,  ///< `to` := what the peer sends
    reduce,   ///< `to` := the values of `from` in the Bracket over their number
  };
  Kind kind = Kind::copy;
  std::int32_t block = 0;
  Rank peer{-1};                    ///< of a send or receive
  std::vector<Spot> from;           ///< one; of a reduce two or more; of a receive none
  Spot to{};                        ///< of all but a send
  std::vector<std::int32_t> after;  ///< steps of the same fragment that have ended before
  /// A send or receive that travels in one message with the step before it, which is of the same
  /// kind and peer: the message leaves when all of it is there.
  bool is_joined = false;
};

/// "send block 0 to rank 5 from the output".
[[nodiscard]] std::string describe(const Step& step);

/// The steps of one rank. They are the same for each fragment: what arrives of one sets off its
/// sends at once, whatever has become of the others (the pipeline of 000 section 5.2.3). Between a
/// pair of ranks the first send is for the first receive, and so on, and so are fragments.
///
/// At most `in_flight` fragments, which whoever runs the schedule chooses, are under way: fragment
/// f begins when fragment f - in_flight has ended here. So a slot is needed once for each fragment
/// in flight, and is free when its fragment has ended.
///
/// No deadlock: let the steps of one fragment on all ranks be free of circles (check_schedules).
/// Then fragment 0 ends everywhere, and each other one after those before it.
struct Schedule {
  Rank rank{0};
  std::int32_t slots = 0;
  std::vector<Step> steps{};
  std::int32_t host_slots = 0;  ///< of the host cache

  /// A line for each step: "2: send block 0 to rank 5 from the output, after 0".
  [[nodiscard]] std::string describe() const;
};

}  // namespace heddle::collectives
