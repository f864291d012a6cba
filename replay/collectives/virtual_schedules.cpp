#include "replay/collectives/virtual_schedules.hpp"

#include <algorithm>
#include <compare>
#include <utility>

#include "base/assert.hpp"
#include "base/require.hpp"

namespace heddle::replay {

using collectives::CompiledSchedule;
using collectives::Rank;
using collectives::Step;

/// A deed that sends or receives, by what both sides call the message.
struct VirtualSchedules::Message {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t number = 0;  ///< CompiledSchedule::Deed::number
  std::int32_t deed = 0;

  [[nodiscard]] bool is_same(const Message& other) const {
    return from == other.from && to == other.to && number == other.number;
  }
  friend auto operator<=>(const Message&, const Message&) = default;
};

VirtualSchedules::VirtualSchedules(std::int32_t ranks, const Make& make) {
  std::vector<Message> sends;
  std::vector<Message> receives;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    begins_.push_back(static_cast<std::int32_t>(deeds_.size()));
    add(CompiledSchedule(make(Rank{rank})), rank, sends, receives);
  }
  begins_.push_back(static_cast<std::int32_t>(deeds_.size()));
  Deed& end = deeds_.emplace_back();
  end.first_block = static_cast<std::int32_t>(blocks_.size());
  end.first_follower = static_cast<std::int32_t>(followers_.size());
  match(std::move(sends), std::move(receives));
}

void VirtualSchedules::add(const CompiledSchedule& schedule, std::int32_t rank,
                           std::vector<Message>& sends, std::vector<Message>& receives) {
  const auto first = static_cast<std::int32_t>(deeds_.size());
  const std::int64_t steps = schedule.steps() + static_cast<std::int64_t>(blocks_.size());
  require(steps <= deeds_max,
          "the schedules of ranks 0 to {} have {} steps together, and at most {} are simulated: "
          "take fewer ranks or another algorithm",
          rank, steps, deeds_max);
  std::int32_t number = 0;
  for (const CompiledSchedule::Deed& made : schedule.deeds()) {
    const Step& step = schedule.step(made.first);
    Deed& deed = deeds_.emplace_back();
    deed.kind = step.kind;
    deed.rank = rank;
    deed.inputs = static_cast<std::int32_t>(step.from.size());
    deed.befores = made.befores;
    deed.first_block = static_cast<std::int32_t>(blocks_.size());
    deed.first_follower = static_cast<std::int32_t>(followers_.size());
    for (std::int32_t s = made.first; s < made.end; ++s) {
      blocks_.push_back(schedule.step(s).block);
    }
    for (const std::int32_t follower : schedule.followers(number)) {
      followers_.push_back(first + follower);
    }
    if (step.kind == Step::Kind::send) {
      sends.push_back({rank, step.peer.value(), made.number, first + number});
    } else if (step.kind == Step::Kind::receive) {
      receives.push_back({step.peer.value(), rank, made.number, first + number});
    }
    ++number;
  }
}

void VirtualSchedules::match(std::vector<Message> sends, std::vector<Message> receives) {
  std::ranges::sort(sends);
  std::ranges::sort(receives);
  HEDDLE_CHECK(sends.size() == receives.size(), "{} sends and {} receives", sends.size(),
               receives.size());
  for (std::size_t m = 0; m < sends.size(); ++m) {
    const Message& send = sends[m];
    HEDDLE_CHECK(send.is_same(receives[m]),
                 "message {} from rank {} to rank {} lacks its receive, or another one its send",
                 send.number, send.from, send.to);
    if (m == 0 || send.from != sends[m - 1].from || send.to != sends[m - 1].to) ++channels_;
    Deed& sender = deeds_[static_cast<std::size_t>(send.deed)];
    Deed& receiver = deeds_[static_cast<std::size_t>(receives[m].deed)];
    sender.match = receives[m].deed;
    receiver.match = send.deed;
    sender.channel = receiver.channel = channels_ - 1;
  }
}

}  // namespace heddle::replay
