#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/assert.hpp"

namespace heddle::p2p {

/// Slots of one size for pieces of messages, in memory that others own. Not thread-safe.
class Staging {
 public:
  using Slot = std::int32_t;

  Staging() = default;
  /// `memory` has room for `slots` slots of `bytes`.
  Staging(std::byte* memory, std::int32_t slots, std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        slots_(static_cast<std::size_t>(slots)),
        memory_(memory) {
    for (Slot slot = slots; slot-- > 0;) free_.push_back(slot);
  }

  [[nodiscard]] std::optional<Slot> take() {
    if (free_.empty()) return std::nullopt;
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(Slot slot) {
    free_.push_back(slot);
    HEDDLE_CHECK(free_.size() <= slots_, "slot {} is given back twice", slot);
  }

  /// Where a slot lies; the host does not access one on a device.
  [[nodiscard]] std::byte* at(Slot slot) const {
    return memory_ + static_cast<std::size_t>(slot) * bytes_;
  }
  [[nodiscard]] std::size_t available() const { return free_.size(); }
  [[nodiscard]] std::size_t used() const { return slots_ - free_.size(); }
  [[nodiscard]] bool is_unused() const { return free_.size() == slots_; }

 private:
  std::size_t bytes_ = 0;
  std::size_t slots_ = 0;
  std::byte* memory_ = nullptr;
  std::vector<Slot> free_;
};

}  // namespace heddle::p2p
