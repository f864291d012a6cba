#include "replay/collectives/virtual_run.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/require.hpp"

namespace heddle::replay {

using collectives::Places;
using collectives::Rank;
using collectives::RankPlace;
using collectives::Step;

namespace {

std::int64_t ns_of(double seconds) {
  return static_cast<std::int64_t>(std::llround(seconds * 1e9));
}

}  // namespace

VirtualRun::VirtualRun(const CollectiveMachine& machine, const Places& places,
                       const VirtualSchedules& schedules, VirtualMessage message)
    : machine_(machine),
      places_(places),
      schedules_(schedules),
      message_(std::move(message)),
      links_(machine, shares_) {
  HEDDLE_CHECK(places.size() == schedules.ranks(), "{} places of {} ranks", places.size(),
               schedules.ranks());
  HEDDLE_CHECK(message_.fragment_elements >= 1 && message_.in_flight >= 1,
               "fragments of {} elements, {} under way", message_.fragment_elements,
               message_.in_flight);
  count_fragments();
  const auto deeds = static_cast<std::size_t>(schedules_.deeds());
  const auto open = static_cast<std::size_t>(message_.in_flight);
  befores_.resize(deeds * open);
  left_.resize(ranks_.size() * open);
  meetings_at_.resize(deeds, -1);
  channels_.resize(static_cast<std::size_t>(schedules_.channels()));
  const std::int32_t gpus = machine.sockets * machine.switches * machine.gpus;
  gpu_free_ns_.resize(static_cast<std::size_t>(gpus) * static_cast<std::size_t>(machine.hosts));
}

/// Each rank has those of its longest block, as Execution has.
void VirtualRun::count_fragments() {
  ranks_.resize(static_cast<std::size_t>(schedules_.ranks()));
  std::int64_t parts = 0;
  std::int64_t most = 1;
  for (std::int32_t rank = 0; rank < schedules_.ranks(); ++rank) {
    std::int64_t longest = 0;
    for (std::int32_t deed = schedules_.begin(rank); deed < schedules_.begin(rank + 1); ++deed) {
      for (const std::int32_t block : schedules_.blocks(deed)) {
        longest = std::max(longest, message_.elements(block));
      }
    }
    state(rank).fragments = (longest + message_.fragment_elements - 1) / message_.fragment_elements;
    most = std::max(most, state(rank).fragments);
    parts += state(rank).fragments * (schedules_.begin(rank + 1) - schedules_.begin(rank));
  }
  require(parts <= events_max,
          "the fragments of all ranks have {} copies, reductions, sends and receives together, and "
          "at most {} are simulated: take fewer ranks, or longer fragments",
          parts, events_max);
  message_.in_flight = static_cast<std::int32_t>(std::min<std::int64_t>(message_.in_flight, most));
}

std::vector<double> VirtualRun::run() {
  for (std::int32_t rank = 0; rank < schedules_.ranks(); ++rank) open_fragments(rank);
  run_ready();
  while (!events_.empty()) {
    const auto next = events_.pop();
    now_ns_ = next.time_ns;
    handle(next.event);
    run_ready();
  }
  HEDDLE_EXPENSIVE(is_valid());
  std::vector<double> seconds;
  for (const RankState& rank : ranks_) {
    HEDDLE_CHECK(rank.first == rank.fragments, "a rank ends at fragment {} of {}", rank.first,
                 rank.fragments);
    seconds.push_back(static_cast<double>(rank.end_ns) * 1e-9);
  }
  return seconds;
}

void VirtualRun::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::ended:
      return finish({event.fragment, event.number});
    case Event::Kind::sent:
      return send({event.fragment, event.number});
    case Event::Kind::sets_out:
      return join_channel(event.number);
    case Event::Kind::passed:
      leave_channel(event.number);
      return come(event.number);
    case Event::Kind::link: {
      const auto ended = shares_.comes({LinkId{event.number}, now_ns_}, foreseen_);
      if (!ended) return push_foreseen();
      const auto meeting = static_cast<std::int32_t>(shares_.tag(*ended));
      shares_.end(now_ns_, *ended);
      settle_later();
      leave_channel(meeting);
      return come(meeting);
    }
    case Event::Kind::settle:
      settles_ = false;
      shares_.settle(now_ns_, foreseen_);
      return push_foreseen();
  }
}

// ---- fragments and deeds ------------------------------------------------------------------------

void VirtualRun::open_fragments(std::int32_t rank) {
  RankState& own = state(rank);
  const std::int32_t begin = schedules_.begin(rank);
  const std::int32_t end = schedules_.begin(rank + 1);
  while (own.next < own.fragments && own.next < own.first + message_.in_flight) {
    left(rank, own.next) = end - begin;
    for (std::int32_t deed = begin; deed < end; ++deed) {
      const std::int32_t befores = schedules_.deed(deed).befores;
      befores_[index({own.next, deed})] = befores;
      if (befores == 0) ready_.push_back({own.next, deed});
    }
    ++own.next;
  }
}

void VirtualRun::run_ready() {
  for (std::size_t k = 0; k < ready_.size(); ++k) {
    const Part next = ready_[k];
    start(next);
  }
  ready_.clear();
}

void VirtualRun::start(const Part& part) {
  const VirtualSchedules::Deed& deed = schedules_.deed(part.deed);
  const std::int64_t count = elements(part);
  if (count == 0) return finish(part);
  switch (deed.kind) {
    case Step::Kind::copy:
    case Step::Kind::reduce:
      return start_step(part, count * message_.element_bytes);
    case Step::Kind::receive:
      return await(part);
    case Step::Kind::send:
      events_.push(on_core(deed.rank, machine_.message_s),
                   {Event::Kind::sent, part.deed, part.fragment});
      return;
  }
}

void VirtualRun::start_step(const Part& part, std::int64_t bytes) {
  const VirtualSchedules::Deed& deed = schedules_.deed(part.deed);
  const bool is_copy = deed.kind == Step::Kind::copy;
  const double inputs = is_copy ? 1 : deed.inputs - 1;
  const double rate = is_copy ? machine_.copied_bytes_per_s : machine_.reduced_bytes_per_s;
  const double seconds = machine_.step_s + inputs * static_cast<double>(bytes) / rate;
  const RankPlace& place = places_[Rank{deed.rank}];
  std::int64_t end_ns = 0;
  if (place.gpu == RankPlace::no_gpu) {
    end_ns = on_core(deed.rank, seconds);
  } else {
    const std::int64_t gpus = machine_.sockets * machine_.switches * machine_.gpus;
    std::int64_t& free_ns = gpu_free_ns_[static_cast<std::size_t>(place.host * gpus + place.gpu)];
    free_ns = std::max(free_ns, now_ns_) + ns_of(seconds);
    end_ns = free_ns;
  }
  events_.push(end_ns, {Event::Kind::ended, part.deed, part.fragment});
}

void VirtualRun::finish(const Part& part) {
  const std::int32_t rank = schedules_.deed(part.deed).rank;
  for (const std::int32_t follower : schedules_.followers(part.deed)) {
    const Part next{part.fragment, follower};
    if (--befores_[index(next)] == 0) ready_.push_back(next);
  }
  if (--left(rank, part.fragment) > 0) return;
  RankState& own = state(rank);
  own.end_ns = now_ns_;
  while (own.first < own.next && left(rank, own.first) == 0) ++own.first;
  open_fragments(rank);
}

std::int64_t VirtualRun::elements(const Part& part) const {
  std::int64_t count = 0;
  for (const std::int32_t block : schedules_.blocks(part.deed)) {
    const std::int64_t rest = message_.elements(block) - part.fragment * message_.fragment_elements;
    count += std::clamp<std::int64_t>(rest, 0, message_.fragment_elements);
  }
  return count;
}

// ---- messages -----------------------------------------------------------------------------------

/// When the rank's core has done work that it begins now or behind what it is at.
std::int64_t VirtualRun::on_core(std::int32_t rank, double seconds) {
  std::int64_t& free_ns = state(rank).core_free_ns;
  free_ns = std::max(free_ns, now_ns_) + ns_of(seconds);
  return free_ns;
}

/// A sender may be many fragments ahead where its messages are eager: a list for each receive.
std::int32_t VirtualRun::meeting_of(std::int32_t receive, std::int64_t fragment) {
  std::int32_t& first = meetings_at_[static_cast<std::size_t>(receive)];
  for (std::int32_t m = first; m != -1; m = at(m).next) {
    if (at(m).fragment == fragment) return m;
  }
  auto made = static_cast<std::int32_t>(meetings_.size());
  if (free_meetings_.empty()) {
    meetings_.emplace_back();
  } else {
    made = free_meetings_.back();
    free_meetings_.pop_back();
  }
  const std::int64_t bytes = elements({fragment, receive}) * message_.element_bytes;
  at(made) = {.fragment = fragment, .bytes = bytes, .receive = receive, .next = first};
  first = made;
  ++messages_;
  return made;
}

void VirtualRun::release(std::int32_t meeting) {
  std::int32_t* at_link = &meetings_at_[static_cast<std::size_t>(at(meeting).receive)];
  while (*at_link != meeting) at_link = &at(*at_link).next;
  *at_link = at(meeting).next;
  free_meetings_.push_back(meeting);
}

void VirtualRun::await(const Part& part) {
  const std::int32_t meeting = meeting_of(part.deed, part.fragment);
  Meeting& own = at(meeting);
  own.is_awaited = true;
  if (own.has_come) return deliver(meeting);
  if (own.is_sent && !is_eager(own)) set_out(meeting);
}

void VirtualRun::send(const Part& part) {
  const std::int32_t meeting = meeting_of(schedules_.deed(part.deed).match, part.fragment);
  Meeting& own = at(meeting);
  own.is_sent = true;
  const bool is_eager_one = is_eager(own);
  if (is_eager_one || own.is_awaited) set_out(meeting);
  if (is_eager_one) finish(part);
}

void VirtualRun::set_out(std::int32_t meeting) {
  const Meeting& own = at(meeting);
  const VirtualSchedules::Deed& receive = schedules_.deed(own.receive);
  const std::int32_t from = schedules_.deed(receive.match).rank;
  const Reach reach = CollectiveMachine::reach(places_[Rank{from}], places_[Rank{receive.rank}]);
  double seconds = machine_.way(reach).latency_s;
  if (!is_eager(own)) seconds += machine_.rendezvous_s;
  events_.push(now_ns_ + ns_of(seconds), {Event::Kind::sets_out, meeting, 0});
}

void VirtualRun::join_channel(std::int32_t meeting) {
  const Meeting& own = at(meeting);
  if (own.bytes == 0) return come(meeting);
  Channel& channel = channels_[static_cast<std::size_t>(schedules_.deed(own.receive).channel)];
  const std::int32_t before = std::exchange(channel.last, meeting);
  if (before != -1) {
    at(before).behind = meeting;
    return;
  }
  channel.first = meeting;
  pass_links(meeting);
}

/// The message has passed: the next one does.
void VirtualRun::leave_channel(std::int32_t meeting) {
  const Meeting& own = at(meeting);
  Channel& channel = channels_[static_cast<std::size_t>(schedules_.deed(own.receive).channel)];
  channel.first = own.behind;
  if (channel.first == -1) {
    channel.last = -1;
  } else {
    pass_links(channel.first);
  }
}

void VirtualRun::pass_links(std::int32_t meeting) {
  const Meeting& own = at(meeting);
  const VirtualSchedules::Deed& receive = schedules_.deed(own.receive);
  const RankPlace& from = places_[Rank{schedules_.deed(receive.match).rank}];
  const RankPlace& to = places_[Rank{receive.rank}];
  const double rate = machine_.way(CollectiveMachine::reach(from, to)).bytes_per_s;
  const auto bytes = static_cast<double>(own.bytes);
  const std::span<const LinkId> path = links_.path(from, to);
  if (path.empty()) {
    events_.push(now_ns_ + ns_of(bytes / rate), {Event::Kind::passed, meeting, 0});
    return;
  }
  static_cast<void>(shares_.begin(now_ns_, bytes, rate, path, meeting));
  settle_later();
}

/// The message is at the receiver's.
void VirtualRun::come(std::int32_t meeting) {
  const Meeting own = at(meeting);
  at(meeting).has_come = true;
  if (own.is_awaited) deliver(meeting);
  if (!is_eager(own)) finish({own.fragment, schedules_.deed(own.receive).match});
}

void VirtualRun::deliver(std::int32_t meeting) {
  const Meeting own = at(meeting);
  release(meeting);
  events_.push(on_core(schedules_.deed(own.receive).rank, machine_.message_s),
               {Event::Kind::ended, own.receive, own.fragment});
}

void VirtualRun::settle_later() {
  if (std::exchange(settles_, true)) return;
  events_.push(now_ns_, {Event::Kind::settle, 0, 0});
}

void VirtualRun::push_foreseen() {
  for (const LinkShares::Foreseen& end : foreseen_) {
    events_.push(end.end_ns, {Event::Kind::link, end.link.value(), 0});
  }
  foreseen_.clear();
}

VirtualRun::LinkUse VirtualRun::busiest() const {
  LinkUse most{LinkId{-1}, 0};
  for (LinkId link{0}; link < LinkId{shares_.links()}; ++link) {
    if (shares_.busy_ns(link) > most.busy_ns) most = {link, shares_.busy_ns(link)};
  }
  return most;
}

bool VirtualRun::is_valid() const {
  for (const RankState& rank : ranks_) {
    if (rank.first > rank.next || rank.next > rank.fragments) return false;
    if (rank.next > rank.first + message_.in_flight) return false;
  }
  return shares_.is_valid();
}

}  // namespace heddle::replay
