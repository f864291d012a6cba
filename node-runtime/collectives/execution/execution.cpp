#include "node-runtime/collectives/execution/execution.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {
void Courier::work(p2p::DeviceWork, std::int64_t ticket) {
  HEDDLE_CHECK(false, "work {} of a device, of a courier that has none", ticket);
}

void Courier::refer(std::shared_ptr<p2p::Referral>, std::int64_t ticket) {
  HEDDLE_CHECK(false, "a reference {} to device memory, of a courier that has none", ticket);
}

Execution::Execution(Task task, Courier& courier) : task_(std::move(task)), courier_(courier) {
  HEDDLE_CHECK(task_.fragment_elements >= 1 && task_.in_flight >= 1 && task_.element_bytes >= 0,
               "fragments of {} elements of {} bytes, {} under way", task_.fragment_elements,
               task_.element_bytes, task_.in_flight);
  std::int64_t longest = 0;
  for (const Step& step : task_.schedule->schedule().steps) {
    longest = std::max(longest, task_.place(step.block).count);
  }
  fragment_count_ = (longest + task_.fragment_elements - 1) / task_.fragment_elements;
  const auto open =
      static_cast<std::size_t>(std::min<std::int64_t>(task_.in_flight, fragment_count_));
  task_.in_flight = std::max<std::int32_t>(1, static_cast<std::int32_t>(open));
  fragments_.resize(open);
}

bool Execution::is_over() const {
  return messages_ == 0 && (failure_.has_value() || phase_ == Phase::over);
}

void Execution::begin() {
  go_on();
}

/// Whatever ends meanwhile, by this thread, is seen before this returns.
void Execution::go_on() {
  if (std::exchange(is_going_on_, true)) return;
  bool goes_on = true;
  while (goes_on && !failure_) {
    switch (phase_) {
      case Phase::before:
        goes_on = next_stage(task_.before);
        if (goes_on && stage_ > task_.before.size()) choose_way();
        break;
      case Phase::errand:
        goes_on = run_errand();
        if (!goes_on || failure_) break;
        way_ = errand_->describe();
        skip_steps();
        break;
      case Phase::steps:
        run_ready();
        goes_on = first_ == fragment_count_ && !failure_;
        if (goes_on) enter(Phase::after);
        break;
      case Phase::after:
        goes_on = next_stage(task_.after);
        if (goes_on && stage_ > task_.after.size()) enter(Phase::over);
        break;
      case Phase::over:
        goes_on = false;
        break;
    }
  }
  is_going_on_ = false;
}

void Execution::enter(Phase phase) {
  phase_ = phase;
  stage_ = 0;
}

/// Begins the stage whose turn it is, unless the one before is under way: then false. Behind the
/// last one `stage_` is beyond them.
bool Execution::next_stage(const std::vector<Stage>& stages) {
  if (chores_left_ > 0) return false;
  if (stage_ >= stages.size()) {
    stage_ = stages.size() + 1;
    return true;
  }
  const Stage& stage = stages[stage_++];
  chores_left_ = static_cast<std::int32_t>(stage.size());
  messages_ += chores_left_;
  // An exception leaves those that have not begun.
  std::int32_t left = chores_left_;
  try {
    for (std::size_t k = 0; k < stage.size(); ++k) {
      const bool is_over = stage[k].begin(courier_, -1 - static_cast<std::int64_t>(k));
      --left;
      if (!is_over) continue;
      --chores_left_;
      --messages_;
    }
  } catch (...) {
    chores_left_ -= left;
    messages_ -= left;
    is_going_on_ = false;
    throw;
  }
  return true;
}

void Execution::open_fragments() {
  const std::span<const CompiledSchedule::Deed> deeds = task_.schedule->deeds();
  while (next_ < fragment_count_ && next_ < first_ + task_.in_flight) {
    Fragment& opened = fragment(next_);
    opened.number = next_;
    opened.left = static_cast<std::int32_t>(deeds.size());
    opened.befores.resize(deeds.size());
    for (std::size_t d = 0; d < deeds.size(); ++d) {
      opened.befores[d] = deeds[d].befores;
      if (deeds[d].befores == 0) ready_.push_back({next_, static_cast<std::int32_t>(d)});
    }
    ++next_;
    // Without a deed a rank has nothing to do.
    if (deeds.empty()) ++first_;
  }
}

/// Deeds may end while they begin, by this thread, and make others ready.
void Execution::run_ready() {
  if (std::exchange(is_running_, true)) return;
  try {
    for (std::size_t k = 0; k < ready_.size() && !failure_; ++k) {
      const Ready next = ready_[k];
      start(next.fragment, next.deed);
    }
  } catch (...) {
    is_running_ = is_going_on_ = false;
    throw;
  }
  ready_.clear();
  is_running_ = false;
  HEDDLE_EXPENSIVE(is_valid());
}

void Execution::start(std::int64_t fragment, std::int32_t deed) {
  const Step& first =
      task_.schedule->step(task_.schedule->deeds()[static_cast<std::size_t>(deed)].first);
  const bool is_message = first.kind == Step::Kind::send || first.kind == Step::Kind::receive;
  if (is_message && start_message(fragment, deed)) return;
  if (!is_message && task_.lane && start_work(fragment, deed)) return;
  if (!is_message && task_.works && start_copy_works(fragment, deed)) return;
  if (!is_message && !task_.lane) run_step(first, fragment);
  finish(fragment, deed);
}

/// False: none of its blocks has elements in this fragment, on either side.
bool Execution::start_message(std::int64_t fragment, std::int32_t deed) {
  const CompiledSchedule& schedule = *task_.schedule;
  const CompiledSchedule::Deed& message = schedule.deeds()[static_cast<std::size_t>(deed)];
  const Step& first = schedule.step(message.first);
  const bool is_send = first.kind == Step::Kind::send;
  std::vector<std::span<std::byte>> pieces;
  Courier::Name name{fragment, message.number, message.messages, task_.seal};
  for (std::int32_t s = message.first; s < message.end; ++s) {
    const Step& step = schedule.step(s);
    const std::int64_t count = elements(step.block, fragment);
    if (count == 0) continue;
    name.seal = mixed(name.seal, static_cast<std::uint64_t>(step.block));
    name.seal = mixed(name.seal, static_cast<std::uint64_t>(count));
    name.seal = mixed(name.seal, task_.place(step.block).signature);
    pieces.push_back(bytes(is_send ? step.from.front() : step.to, step.block, fragment));
  }
  if (pieces.empty()) return false;
  const std::int64_t ticket = ticket_of(fragment, deed);
  if (task_.lane && pieces.size() > 1) {
    start_gathered({nullptr, std::move(pieces), first.peer, name, is_send, false}, ticket);
    return true;
  }
  ++messages_;
  if (!is_send) {
    courier_.receive(first.peer, name, pieces, ticket);
    return true;
  }
  const std::vector<std::span<const std::byte>> sent(pieces.begin(), pieces.end());
  courier_.send(first.peer, name, sent, ticket);
  return true;
}

/// A copy or a reduction; false: it has no elements in this fragment, or they are there.
bool Execution::start_work(std::int64_t fragment, std::int32_t deed) {
  const Step& step =
      task_.schedule->step(task_.schedule->deeds()[static_cast<std::size_t>(deed)].first);
  const std::int64_t count = elements(step.block, fragment);
  if (count == 0) return false;
  std::byte* const to = memory(step.to, step.block, fragment);
  std::vector<const std::byte*> from;
  for (const Spot& spot : step.from) from.push_back(memory(spot, step.block, fragment));
  const std::int64_t bytes = count * task_.element_bytes;
  const bool is_copy = step.kind == Step::Kind::copy;
  if (is_copy && from.front() == to) return false;
  const auto queue = [=, to_spot = step.to, from_spot = step.from.front(),
                      operation = task_.operation,
                      scalar = task_.scalar](const p2p::WorkPlace& place) {
    if (is_copy) {
      place.stream.copy({to, device_of(to_spot, place)},
                        {from.front(), device_of(from_spot, place)},
                        static_cast<std::size_t>(bytes));
      return;
    }
    const Device* const device = &place.stream.device();
    std::vector<Source> inputs;
    for (const std::byte* one : from) inputs.push_back({one, device});
    const Destination output{to, device};
    const std::int64_t element = size_of(scalar) * operation.scalars_per_element();
    queue_reduction(place.stream, operation, scalar, std::span(&output, 1), inputs,
                    bytes / element);
  };
  ++messages_;
  courier_.work({*task_.lane, {}, queue, nullptr}, ticket_of(fragment, deed));
  return true;
}

void Execution::run_step(const Step& step, std::int64_t fragment) const {
  const std::int64_t count = elements(step.block, fragment);
  if (count == 0) return;
  std::byte* const to = memory(step.to, step.block, fragment);
  if (step.kind == Step::Kind::copy) {
    const std::byte* const from = memory(step.from.front(), step.block, fragment);
    if (task_.copy && task_.copy(step, from, to)) return;
    if (from == to) return;
    std::memmove(to, from, static_cast<std::size_t>(count * task_.element_bytes));
    return;
  }
  std::array<const void*, ReduceOperation::inputs_max> inputs{};
  HEDDLE_CHECK(step.from.size() <= inputs.size(), "a reduction of {} inputs", step.from.size());
  for (std::size_t k = 0; k < step.from.size(); ++k) {
    inputs.at(k) = memory(step.from[k], step.block, fragment);
  }
  task_.operation.reduce(task_.scalar, to, std::span(inputs).first(step.from.size()),
                         count * task_.element_bytes / task_.operation.element_bytes(task_.scalar));
}

void Execution::finish(std::int64_t number, std::int32_t deed) {
  Fragment& ending = fragment(number);
  ending.befores[static_cast<std::size_t>(deed)] = -1;
  --ending.left;
  for (const std::int32_t follower : task_.schedule->followers(deed)) {
    if (--ending.befores[static_cast<std::size_t>(follower)] > 0) continue;
    ready_.push_back({number, follower});
  }
  if (ending.left > 0) return;
  while (first_ < next_ && fragment(first_).left == 0) ++first_;
  open_fragments();
}

void Execution::ended(std::int64_t ticket, const Error* failure) {
  HEDDLE_CHECK(messages_ > 0, "message {} has ended, and none is under way", ticket);
  --messages_;
  if (failure != nullptr) fail(*failure);
  if (ticket <= errand_tickets) {
    errand_ended_.push_back(errand_tickets - ticket);
    return go_on();
  }
  if (ticket < 0) {
    --chores_left_;
    return go_on();
  }
  if (failure_ || continue_gathered(ticket) || continue_copy_works(ticket)) return;
  const auto deeds = static_cast<std::int64_t>(task_.schedule->deeds().size());
  finish(ticket / deeds, static_cast<std::int32_t>(ticket % deeds));
  go_on();
}

void Execution::finish_task() {
  const Task done = std::exchange(task_, Task{});
  task_.schedule = done.schedule;
  errand_ = nullptr;
  gathered_.clear();
  copy_works_.clear();
  if (!failure_ && done.finish) done.finish();
}

void Execution::fail(const Error& why) {
  if (!failure_) failure_ = why;
}

std::int64_t Execution::ticket_of(std::int64_t fragment, std::int32_t deed) const {
  return fragment * static_cast<std::int64_t>(task_.schedule->deeds().size()) + deed;
}

std::int64_t Execution::elements(std::int32_t block, std::int64_t fragment) const {
  const std::int64_t left = task_.place(block).count - fragment * task_.fragment_elements;
  return std::clamp<std::int64_t>(left, 0, task_.fragment_elements);
}

std::byte* Execution::memory(const Spot& spot, std::int32_t block, std::int64_t fragment) const {
  const BlockPlace place = task_.place(block);
  const std::int64_t inside = fragment * task_.fragment_elements;
  switch (spot.memory) {
    case Spot::Memory::input:
      // Steps only read there.
      return const_cast<std::byte*>(task_.input) +  // NOLINT(cppcoreguidelines-pro-type-const-cast)
             (place.input + inside) * task_.element_bytes;
    case Spot::Memory::output:
      return task_.output + (place.output + inside) * task_.element_bytes;
    case Spot::Memory::host_cache: {
      const std::int64_t slots = task_.schedule->schedule().host_slots;
      const std::int64_t slot = fragment % task_.in_flight * slots + spot.slot;
      return task_.host_slots.get() + slot * task_.fragment_elements * task_.element_bytes;
    }
    case Spot::Memory::slot:
      break;
  }
  if (task_.slot_begins != nullptr) {
    return task_.slots + (*task_.slot_begins)[static_cast<std::size_t>(spot.slot)];
  }
  const std::int64_t slots = task_.schedule->schedule().slots;
  const std::int64_t slot = fragment % task_.in_flight * slots + spot.slot;
  return task_.slots + slot * task_.fragment_elements * task_.element_bytes;
}

std::span<std::byte> Execution::bytes(const Spot& spot, std::int32_t block,
                                      std::int64_t fragment) const {
  return {memory(spot, block, fragment),
          static_cast<std::size_t>(elements(block, fragment) * task_.element_bytes)};
}

std::string Execution::waits_for() const {
  if (is_over()) return "";
  if (phase_ == Phase::errand) return errand_->waits_for();
  if (phase_ != Phase::steps) {
    const std::vector<Stage>& stages = phase_ == Phase::before ? task_.before : task_.after;
    const bool is_known = stage_ > 0 && stage_ <= stages.size();
    return is_known && !stages[stage_ - 1].empty() ? stages[stage_ - 1].front().what : "";
  }
  if (fragments_.empty()) return "";
  const Fragment& oldest = fragments_[static_cast<std::size_t>(first_ % task_.in_flight)];
  const auto waiting = std::ranges::find(oldest.befores, 0);
  if (waiting == oldest.befores.end()) return "";
  const auto deed = static_cast<std::size_t>(waiting - oldest.befores.begin());
  return describe(task_.schedule->step(task_.schedule->deeds()[deed].first));
}

bool Execution::is_valid() const {
  if (first_ > next_ || next_ > fragment_count_ || next_ > first_ + task_.in_flight) return false;
  for (std::int64_t f = first_; f < next_; ++f) {
    const Fragment& open = fragments_[static_cast<std::size_t>(f % task_.in_flight)];
    if (open.number != f) return false;
    const auto left = std::ranges::count_if(open.befores, [](std::int32_t b) { return b >= 0; });
    if (open.left != left) return false;
  }
  return messages_ >= 0;
}

}  // namespace heddle::collectives
