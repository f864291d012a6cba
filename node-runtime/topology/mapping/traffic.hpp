#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/index.hpp"

namespace heddle {

/// What is mapped onto a GPU: a device of a node. Slots of one host, from 0.
using SlotId = Index<struct SlotTag, std::int32_t>;

/// What one end sends to another.
struct Flow {
  double bytes = 0;
  double messages = 0;  ///< 0: not counted

  Flow& operator+=(const Flow& more);
  friend bool operator==(const Flow&, const Flow&) = default;
};

/// What a slot exchanges with all but the other slots.
struct SlotTraffic {
  std::int32_t node = 0;    ///< number of its node on this host
  std::int32_t device = 0;  ///< number of the device of that node
  Flow from_host{};         ///< from its node's host memory
  Flow to_host{};
  Flow from_network{};  ///< from other hosts
  Flow to_network{};
};

/// What the slots of one host send: a matrix of flows between them, and each one's flows from and
/// to host memory and other hosts. Invariant: all bytes and messages are finite and not negative;
/// no slot sends to itself; a node has each of its devices once.
class Traffic {
 public:
  /// Slot i is the only device of node i.
  explicit Traffic(std::int32_t slots, std::string name = {});
  explicit Traffic(std::vector<SlotTraffic> slots, std::string name = {});

  /// What it is of, for messages: "3d 2x2x4 weight 3".
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int32_t slots() const { return static_cast<std::int32_t>(slots_.size()); }
  [[nodiscard]] const SlotTraffic& slot(SlotId slot) const;
  [[nodiscard]] SlotTraffic& slot(SlotId slot);

  [[nodiscard]] const Flow& flow(SlotId from, SlotId to) const;
  /// Throws Error(usage) if a value is negative or not finite, or a slot would send to itself.
  void add(SlotId from, SlotId to, const Flow& flow);

  /// Whether all that has bytes has a number of messages, too.
  [[nodiscard]] bool has_counts() const;
  /// Whether nothing is sent at all.
  [[nodiscard]] bool is_empty() const;
  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] std::size_t at(SlotId from, SlotId to) const;

  std::string name_;
  std::vector<SlotTraffic> slots_;
  std::vector<Flow> flows_;  ///< row by row: from each slot to all
};

}  // namespace heddle
