#include "node-runtime/collectives/execution/compiled_schedule.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace heddle::collectives {

CompiledSchedule::CompiledSchedule(Schedule schedule) : schedule_(std::move(schedule)) {
  std::vector<std::int32_t> deed_of(schedule_.steps.size(), 0);
  std::map<std::pair<Step::Kind, Rank>, std::int32_t> messages;
  for (std::int32_t s = 0; s < steps(); ++s) {
    if (step(s).is_joined) {
      ++deeds_.back().end;
    } else {
      Deed& deed = deeds_.emplace_back();
      deed.first = s;
      deed.end = s + 1;
      const Step::Kind kind = step(s).kind;
      if (kind == Step::Kind::send || kind == Step::Kind::receive) {
        deed.number = messages[{kind, step(s).peer}]++;
      }
    }
    deed_of[static_cast<std::size_t>(s)] = static_cast<std::int32_t>(deeds_.size()) - 1;
  }
  for (Deed& deed : deeds_) {
    const auto pair = messages.find({step(deed.first).kind, step(deed.first).peer});
    if (pair != messages.end()) deed.messages = pair->second;
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;  // before, after
  for (std::int32_t s = 0; s < steps(); ++s) {
    for (const std::int32_t earlier : step(s).after) {
      pairs.emplace_back(deed_of[static_cast<std::size_t>(earlier)],
                         deed_of[static_cast<std::size_t>(s)]);
    }
  }
  std::ranges::sort(pairs);
  pairs.erase(std::ranges::unique(pairs).begin(), pairs.end());
  for (std::size_t k = 0; const auto& [before, after] : pairs) {
    for (; begins_.size() <= static_cast<std::size_t>(before);) {
      begins_.push_back(static_cast<std::int32_t>(k));
    }
    followers_.push_back(after);
    ++deeds_[static_cast<std::size_t>(after)].befores;
    ++k;
  }
  begins_.resize(deeds_.size() + 1, static_cast<std::int32_t>(followers_.size()));
}

std::span<const std::int32_t> CompiledSchedule::followers(std::int32_t deed) const {
  const auto index = static_cast<std::size_t>(deed);
  return std::span(followers_)
      .subspan(static_cast<std::size_t>(begins_[index]),
               static_cast<std::size_t>(begins_[index + 1] - begins_[index]));
}

}  // namespace heddle::collectives
