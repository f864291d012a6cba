#include "node-runtime/collectives/schedule/scan.hpp"

#include <optional>

#include "node-runtime/collectives/schedule/generator_parts.hpp"

namespace heddle::collectives {

Schedule make_scan(Rank rank, std::int32_t ranks, Scan kind) {
  ScheduleWriter writer(rank);
  const std::int32_t own = rank.value();
  Held block;  // the value of the aligned block of ranks that has this one
  // The value of the ranks of this block that count; the last reduction makes the result.
  std::optional<Held> result;
  if (kind == Scan::inclusive) result = Held{};
  // Behind the highest bit of its number a rank is in the left half of each block.
  const auto is_last = [own](std::int32_t step) { return own < 2 * step; };
  for (std::int32_t step = 1; step < ranks; step *= 2) {
    const bool is_right = (own & step) != 0;
    const std::int32_t partner = own ^ step;
    // A block is whole if its last rank is there; only whole ones count, and only to their right.
    const bool is_whole = (own | (step - 1)) < ranks;
    const bool partner_is_whole = (partner | (step - 1)) < ranks;
    const bool is_wanted_whole = (own | (2 * step - 1)) < ranks && 2 * step < ranks;
    const bool gives = partner < ranks && is_whole && (is_right ? is_wanted_whole : true);
    const bool takes = partner < ranks && partner_is_whole && (is_right || is_wanted_whole);
    if (gives) writer.send(Rank{partner}, 0, block);
    if (!takes) continue;
    const Held other = writer.receive(Rank{partner}, 0, writer.new_slot());
    if (is_right) {
      const Spot to = is_last(step) ? Spot::in_output() : writer.new_slot();
      result = result ? writer.reduce(0, other, *result, to) : other;
    }
    if (!is_wanted_whole) continue;
    block = is_right ? writer.reduce(0, other, block, writer.new_slot())
                     : writer.reduce(0, block, other, writer.new_slot());
  }
  const bool is_there = result && result->spot == Spot::in_output();
  if (result && !is_there) writer.copy(0, *result, Spot::in_output());
  return writer.take();
}

}  // namespace heddle::collectives
