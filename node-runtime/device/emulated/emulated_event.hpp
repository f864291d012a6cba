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

/// An event slot in another process's file.
struct PeerEvent {
  std::unique_ptr<const PeerArena> arena;
  Mapping words;  ///< read-only
};

/// Location of an event's slot and the mapping that keeps it valid: one of `arena` and `peer` is
/// set. Copyable: a queued wait holds a copy and does not need the Event.
struct EventWords {
  const EventSlot* slot = nullptr;
  std::shared_ptr<SharedArena> arena;
  std::shared_ptr<const PeerEvent> peer;
};

enum class WaitResult : std::uint8_t { done, failed, exporter_gone, interrupted };

/// Blocks until record `number` is complete and returns how. Checks `is_interrupted`, and the
/// exporting process of an opened event, at least every 50 ms.
///
/// If a later record of the same event has failed meanwhile, an earlier successful one may be
/// reported as `failed`: the streams of a failed device stop one operation sooner.
[[nodiscard]] WaitResult wait_for_record(const EventWords& words, std::uint64_t number,
                                         const std::function<bool()>& is_interrupted);

/// Failure text for wait_for_record() or an event's state.
[[nodiscard]] std::string failure_of(const EventWords& words, bool exporter_gone);

/// Publishes the completion of record `number` and everything its stream did before.
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
    // Acquire: an importer that sees the number also sees what preceded the record.
    return words_.slot->submitted.load(std::memory_order_acquire);
  }

  /// Throws Error(internal) if `stream` may not record the event now.
  void check_recordable(std::uint64_t stream) const;
  /// Assigns the next record number. Call in the order of the stream's queue.
  [[nodiscard]] std::uint64_t begin_record(std::uint64_t stream);
  [[nodiscard]] EventSlot& own_slot() const { return words_.arena->slot(slot_index_); }

 private:
  EmulatedDevice& device_;
  const int exceptions_at_start_;
  const EventTiming timing_;
  EventWords words_;
  std::uint32_t slot_index_ = 0;   ///< for an own event
  std::uint64_t recorded_on_ = 0;  ///< stream of the last record, 0: never; recording thread only
  mutable ExporterWatch watch_;    ///< of an opened event
};

}  // namespace heddle
