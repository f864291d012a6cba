#include "node-runtime/collectives/schedule/schedule.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/require.hpp"

namespace heddle::collectives {
namespace {

std::string text_of(const Spot& spot) {
  switch (spot.memory) {
    case Spot::Memory::input:
      return "the input";
    case Spot::Memory::output:
      return "the output";
    case Spot::Memory::host_cache:
      return fmt::format("host slot {}", spot.slot);
    case Spot::Memory::slot:
      break;
  }
  return fmt::format("slot {}", spot.slot);
}

std::string text_of(const std::vector<Spot>& spots) {
  std::string text;
  for (const Spot& spot : spots) text += (text.empty() ? "" : ", ") + text_of(spot);
  return text;
}

}  // namespace

std::string describe(const Step& step) {
  switch (step.kind) {
    case Step::Kind::copy:
      return fmt::format("copy block {} from {} to {}", step.block, text_of(step.from),
                         text_of(step.to));
    case Step::Kind::send:
      return fmt::format("send block {} to rank {} from {}", step.block, step.peer.value(),
                         text_of(step.from));
    case Step::Kind::receive:
      return fmt::format("receive block {} from rank {} to {}", step.block, step.peer.value(),
                         text_of(step.to));
    case Step::Kind::reduce:
      break;
  }
  return fmt::format("reduce block {} of {} to {}", step.block, text_of(step.from),
                     text_of(step.to));
}

Cut::Cut(std::span<const std::int64_t> counts, std::int64_t fragment_elements)
    : fragment_elements_(fragment_elements) {
  require(fragment_elements >= 1, "a message is cut into fragments of {} elements",
          fragment_elements);
  begins_.push_back(0);
  for (const std::int64_t count : counts) {
    std::int64_t end = 0;
    require(count >= 0 && !__builtin_add_overflow(begins_.back(), count, &end),
            "block {} of a message has {} elements, {} are before it", begins_.size() - 1, count,
            begins_.back());
    begins_.push_back(end);
    fragments_ = std::max(fragments_, (count - 1) / fragment_elements + (count > 0 ? 1 : 0));
  }
}

Cut::Range Cut::block(std::int32_t block) const {
  HEDDLE_CHECK(block >= 0 && block < blocks(), "block {} of {}", block, blocks());
  const auto index = static_cast<std::size_t>(block);
  return {begins_[index], begins_[index + 1]};
}

Cut::Range Cut::fragment(std::int32_t block, std::int64_t fragment) const {
  HEDDLE_CHECK(fragment >= 0 && fragment < fragments_, "fragment {} of {}", fragment, fragments_);
  const Range all = this->block(block);
  // No overflow: a block that reaches this fragment has more elements than lie before it.
  if (fragment > 0 && all.count() / fragment < fragment_elements_) return {all.end, all.end};
  const std::int64_t begin = all.begin + fragment * fragment_elements_;
  return {begin, begin + std::min(fragment_elements_, all.end - begin)};
}

std::string Schedule::describe() const {
  std::string text = fmt::format("rank {}, {} slots{}\n", rank.value(), slots,
                                 host_slots > 0 ? fmt::format(", {} on the host", host_slots) : "");
  for (std::size_t s = 0; s < steps.size(); ++s) {
    text += fmt::format("  {}: {}", s, heddle::collectives::describe(steps[s]));
    if (!steps[s].after.empty()) text += fmt::format(", after {}", fmt::join(steps[s].after, ", "));
    text += steps[s].is_joined ? ", in the message before\n" : "\n";
  }
  return text;
}

}  // namespace heddle::collectives
