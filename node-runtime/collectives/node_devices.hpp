#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle::collectives {

/// A node's devices for the calls of its groups. Throws Error(usage) when the node has ended.
class NodeDevices final : public RankDevices {
 public:
  explicit NodeDevices(std::weak_ptr<UserMessages> messages) : messages_(std::move(messages)) {}

  [[nodiscard]] std::optional<p2p::LaneId> lane_of(const void* memory,
                                                   std::int64_t bytes) const override {
    return messages()->lane_of(memory, bytes);
  }
  [[nodiscard]] const Device& device(p2p::LaneId lane) const override {
    return messages()->device(lane);
  }
  [[nodiscard]] std::shared_ptr<std::byte> scratch(p2p::LaneId lane, std::int64_t bytes) override {
    return messages()->scratch().take(lane, static_cast<std::size_t>(bytes));
  }
  void run(const std::vector<Stage>& stages) override;
  [[nodiscard]] std::shared_ptr<UserMessages> messages_if_alive() const { return messages_.lock(); }
  [[nodiscard]] std::shared_ptr<UserMessages> messages() const {
    if (auto found = messages_.lock()) return found;
    throw Error(ErrorCode::usage, "a group of a node is used, but the node has ended");
  }

 private:
  std::weak_ptr<UserMessages> messages_;
};

}  // namespace heddle::collectives
