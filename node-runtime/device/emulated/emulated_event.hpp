#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "node-runtime/device/device.hpp"
#include "node-runtime/device/emulated/shared_arena.hpp"
#include "node-runtime/device/exporter_watch.hpp"

namespace heddle {

class EmulatedDevice;

/// An event's words in another process's file.
struct PeerEvent {
  std::unique_ptr<const PeerArena> arena;
  Mapping words;  ///< read-only
};

/// Where the words of an event are, and what keeps them mapped: one of `arena` and `peer` is set.
/// Plain to copy: a queued wait holds one and does not need the Event any more.
struct EventWords {
  const EventSlot* slot = nullptr;
  std::shared_ptr<SharedArena> arena;
  std::shared_ptr<const PeerEvent> peer;
};

enum class WaitResult : std::uint8_t { done, failed, exporter_gone, interrupted };

/// Blocks until record `number` is complete, and says how. Looks at `is_interrupted`, and for
/// another process's event at that process, at least every 50 ms.
///
/// When a later record of the same event has failed meanwhile, `failed` may be said of an earlier
/// one that had not: the streams of one failed device are then lost one operation sooner.
[[nodiscard]] WaitResult wait_for_record(const EventWords& words, std::uint64_t number,
                                         const std::function<bool()>& is_interrupted);

/// Text of the failure that wait_for_record() or an event's state speaks of.
[[nodiscard]] std::string failure_of(const EventWords& words, bool exporter_gone);

/// Publishes that record `number` is complete, with everything its stream did before.
void complete_record(EventSlot& slot, std::uint64_t number, const std::string* failure);

class EmulatedEvent final : public Event {
 public:
  /// A new event of `device`.
  EmulatedEvent(EmulatedDevice& device, std::shared_ptr<SharedArena> arena, EventTiming timing);
  /// An event of another process, opened by `device`.
  EmulatedEvent(EmulatedDevice& device, std::shared_ptr<const PeerEvent> peer);
  EmulatedEvent(const EmulatedEvent&) = delete;
  EmulatedEvent& operator=(const EmulatedEvent&) = delete;
  ~EmulatedEvent() override;

  [[nodiscard]] EventState query() const override;
  [[nodiscard]] std::int64_t completed_ns() const override;
  void synchronize() const override;
  [[nodiscard]] std::string failure() const override;
  [[nodiscard]] const Device& device() const override;

  [[nodiscard]] const EventWords& words() const { return words_; }
  [[nodiscard]] bool is_opened() const { return words_.peer != nullptr; }
  [[nodiscard]] std::uint32_t slot_index() const { return slot_index_; }
  /// Number of the most recent record.
  [[nodiscard]] std::uint64_t submitted() const {
    // Acquire, because an importer must see the record's number no earlier than what led to it.
    return words_.slot->submitted.load(std::memory_order_acquire);
  }

  /// For the stream that is about to record: throws Error(internal) when that is not allowed.
  void check_recordable(std::uint64_t stream) const;
  /// Takes the next record number. Called inside the stream's queue.
  [[nodiscard]] std::uint64_t begin_record(std::uint64_t stream);
  [[nodiscard]] EventSlot& own_slot() const { return words_.arena->slot(slot_index_); }

 private:
  EmulatedDevice& device_;
  const int exceptions_at_start_;
  const EventTiming timing_;
  EventWords words_;
  std::uint32_t slot_index_ = 0;   ///< of an own event
  std::uint64_t recorded_on_ = 0;  ///< stream of the last record, 0: never; recording thread only
  mutable ExporterWatch watch_;    ///< of an opened event
};

}  // namespace heddle
