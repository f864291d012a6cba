#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/assert.hpp"

namespace heddle::p2p {

/// Places of one size for pieces of messages on their way; taken once. Not thread-safe.
class Staging {
 public:
  using Slot = std::int32_t;

  Staging(std::int32_t slots, std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        memory_(static_cast<std::size_t>(slots) * static_cast<std::size_t>(bytes)) {
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
    HEDDLE_CHECK(free_.size() * bytes_ <= memory_.size(), "slot {} is given back twice", slot);
  }

  [[nodiscard]] std::span<std::byte> bytes(Slot slot) {
    return std::span(memory_).subspan(static_cast<std::size_t>(slot) * bytes_, bytes_);
  }
  [[nodiscard]] std::size_t available() const { return free_.size(); }
  [[nodiscard]] bool is_unused() const { return free_.size() * bytes_ == memory_.size(); }

 private:
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::vector<Slot> free_;
};

}  // namespace heddle::p2p
