#include "replay/simulation/block_copies.hpp"

#include <utility>

#include "base/assert.hpp"

namespace heddle::replay {

using protocol::BlockRef;

std::size_t BlockCopies::Hash::operator()(const BlockRef& block) const {
  std::uint64_t z = static_cast<std::uint64_t>(static_cast<std::uint32_t>(block.pool)) << 32U |
                    static_cast<std::uint32_t>(block.index);
  z = (z ^ z >> 30U) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27U) * 0x94D049BB133111EBU;
  return z ^ z >> 31U;
}

bool BlockCopies::lacks(BlockRef block, Side side) const {
  const State* const state = states_.find(block);
  if (state == nullptr) return side == Side::host;
  return !state->has.at(static_cast<std::size_t>(side));
}

bool BlockCopies::bring(BlockRef block, Side side, std::int32_t waiter) {
  const auto to = static_cast<std::size_t>(side);
  State& state = states_[block];
  HEDDLE_CHECK(!state.has.at(to), "block {} of pool {} is there", block.index, block.pool);
  state.waiting.at(to).push_back(waiter);
  return !std::exchange(state.comes.at(to), true);
}

std::vector<std::int32_t> BlockCopies::came(BlockRef block, Side side) {
  const auto to = static_cast<std::size_t>(side);
  State& state = states_[block];
  HEDDLE_CHECK(state.comes.at(to), "block {} of pool {} is not on its way", block.index,
               block.pool);
  state.comes.at(to) = false;
  state.has.at(to) = true;
  return std::exchange(state.waiting.at(to), {});
}

void BlockCopies::written(BlockRef block, Side side) {
  const State* const state = states_.find(block);
  HEDDLE_CHECK(state == nullptr || (!state->comes[0] && !state->comes[1]),
               "block {} of pool {} is written on its way", block.index, block.pool);
  if (side == Side::device) {
    states_.erase(block);
  } else {
    states_[block].has = {false, true};
  }
}

}  // namespace heddle::replay
