#include "node-runtime/device/emulated/emulated_event.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <fmt/core.h>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "node-runtime/device/emulated/emulated_device.hpp"

namespace heddle {
namespace {

/// Longest delay until a dead exporter or an interruption is noticed.
constexpr std::chrono::milliseconds look_interval{50};

/// Pairs with the release in complete_record().
bool is_complete(const EventSlot& slot, std::uint64_t number) {
  return slot.completed.load(std::memory_order_acquire) >= number;
}

/// Call after is_complete(); relaxed, since `completed` has published it.
bool has_failed(const EventSlot& slot, std::uint64_t number) {
  return slot.failed.load(std::memory_order_relaxed) >= number;
}

WaitResult result_of(const EventSlot& slot, std::uint64_t number) {
  return has_failed(slot, number) ? WaitResult::failed : WaitResult::done;
}

}  // namespace

WaitResult wait_for_record(const EventWords& words, std::uint64_t number,
                           const std::function<bool()>& is_interrupted) {
  const EventSlot& slot = *words.slot;
  for (;;) {
    // The futex word is read first: complete_record() changes it last, so either the record is seen
    // as complete below or futex_wait() returns at once.
    const std::uint32_t wake = slot.wake.load(std::memory_order_acquire);
    if (is_complete(slot, number)) return result_of(slot, number);
    if (is_interrupted()) return WaitResult::interrupted;
    if (words.peer != nullptr && !words.peer->arena->is_alive()) {
      // The exporter may have completed the record and then ended.
      return is_complete(slot, number) ? result_of(slot, number) : WaitResult::exporter_gone;
    }
    futex_wait(slot.wake, wake, look_interval);
  }
}

std::string failure_of(const EventWords& words, bool exporter_gone) {
  if (exporter_gone && words.peer != nullptr) {
    return fmt::format("process {}, which exported the event, ended before the event was complete",
                       words.peer->arena->pid());
  }
  std::array<char, EventSlot::message_words * 8 + 1> text{};
  for (std::size_t i = 0; i < EventSlot::message_words; ++i) {
    const std::uint64_t word = words.slot->message[i].load(std::memory_order_relaxed);
    std::memcpy(text.data() + i * 8, &word, 8);
  }
  return text.data();
}

void complete_record(EventSlot& slot, std::uint64_t number, const std::string* failure) {
  if (failure != nullptr) {
    // The first failure of an event is kept: later ones follow from it.
    if (slot.message[0].load(std::memory_order_relaxed) == 0) {
      std::array<char, EventSlot::message_words * 8> text{};
      std::memcpy(text.data(), failure->data(), std::min(failure->size(), text.size()));
      for (std::size_t i = EventSlot::message_words; i-- > 0;) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + i * 8, 8);
        slot.message[i].store(word, std::memory_order_relaxed);
      }
    }
    slot.failed.store(number, std::memory_order_relaxed);
  }
  slot.completed_ns.store(now_ns(), std::memory_order_relaxed);
  // Release: publishes the stream's writes, `failed`, the time and the message to is_complete().
  slot.completed.store(number, std::memory_order_release);
  // Release, after `completed`: see wait_for_record().
  slot.wake.fetch_add(1, std::memory_order_release);
  futex_wake_all(slot.wake);
}

EmulatedEvent::EmulatedEvent(EmulatedDevice& device, std::shared_ptr<SharedArena> arena,
                             EventTiming timing)
    : device_(device),
      exceptions_at_start_(std::uncaught_exceptions()),
      timing_(timing),
      slot_index_(arena->acquire_slot()) {
  words_.slot = &arena->slot(slot_index_);
  words_.arena = std::move(arena);
  device_.event_created();
}

EmulatedEvent::EmulatedEvent(EmulatedDevice& device, std::shared_ptr<const PeerEvent> peer)
    : device_(device), exceptions_at_start_(std::uncaught_exceptions()), timing_(EventTiming::on) {
  words_.slot = reinterpret_cast<const EventSlot*>(peer->words.address());
  words_.peer = std::move(peer);
  device_.event_created();
}

EmulatedEvent::~EmulatedEvent() {
  if (!is_opened()) {
    const bool complete = is_complete(*words_.slot, submitted());
    const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
    HEDDLE_CHECK(complete || unwinding,
                 "an event of device {} is destroyed before its record {} is complete",
                 device_.info().index, submitted());
    // The stream may still complete the record, so no other event gets the slot.
    if (complete) words_.arena->release_slot(slot_index_);
  }
  device_.event_destroyed();
}

const Device& EmulatedEvent::device() const {
  return device_;
}

EventState EmulatedEvent::query() const {
  const std::uint64_t number = submitted();
  if (is_complete(*words_.slot, number)) {
    return has_failed(*words_.slot, number) ? EventState::failed : EventState::done;
  }
  if (!is_opened()) return EventState::pending;
  // The exporter may have completed the record and then ended.
  const auto is_gone = [&] {
    return !words_.peer->arena->is_alive() && !is_complete(*words_.slot, number);
  };
  return watch_.look(is_gone) ? EventState::failed : EventState::pending;
}

std::int64_t EmulatedEvent::completed_ns() const {
  HEDDLE_CHECK(timing_ == EventTiming::on, "completed_ns() of an event of device {} without timing",
               device_.info().index);
  return words_.slot->completed_ns.load(std::memory_order_relaxed);  // published by `completed`
}

void EmulatedEvent::synchronize() const {
  const WaitResult result = wait_for_record(words_, submitted(), [] { return false; });
  if (result == WaitResult::done) return;
  const bool is_gone = result == WaitResult::exporter_gone;
  if (is_gone) watch_.note_gone();
  throw Error(is_gone ? ErrorCode::communication : ErrorCode::internal, failure());
}

std::string EmulatedEvent::failure() const {
  return failure_of(words_, watch_.found_gone());
}

void EmulatedEvent::check_recordable(std::uint64_t stream) const {
  if (is_opened()) {
    throw Error(ErrorCode::internal,
                fmt::format("device {}, stream {}: an event opened from process {} can be waited "
                            "for but not recorded",
                            device_.info().index, stream, words_.peer->arena->pid()));
  }
  if (recorded_on_ != 0 && recorded_on_ != stream && !is_complete(*words_.slot, submitted())) {
    throw Error(
        ErrorCode::internal,
        fmt::format("device {}, stream {}: the event's record on stream {} is not complete; "
                    "record it here after that, or use a second event",
                    device_.info().index, stream, recorded_on_));
  }
}

std::uint64_t EmulatedEvent::begin_record(std::uint64_t stream) {
  recorded_on_ = stream;
  EventSlot& slot = own_slot();
  // Written only by the recording thread. Release pairs with submitted() in other threads.
  const std::uint64_t number = slot.submitted.load(std::memory_order_relaxed) + 1;
  slot.submitted.store(number, std::memory_order_release);
  return number;
}

}  // namespace heddle
