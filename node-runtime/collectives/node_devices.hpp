#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "node-runtime/collectives/call/memory.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle::collectives {

/// Host memory that the operations of a group have at a time. Threads: any.
class HostMemoryInUse {
 public:
  void add(std::int64_t bytes) {
    // Relaxed: counters alone.
    const std::int64_t now = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::int64_t most = bytes_max_.load(std::memory_order_relaxed);
    while (most < now && !bytes_max_.compare_exchange_weak(most, now, std::memory_order_relaxed,
                                                           std::memory_order_relaxed)) {
    }
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t bytes_max() const {
    return bytes_max_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::int64_t> bytes_max_{0};
};

/// A node's devices and memory for the calls of one of its groups. Throws Error(usage) when the
/// node has ended.
class NodeDevices final : public RankDevices {
 public:
  explicit NodeDevices(std::weak_ptr<UserMessages> messages);

  [[nodiscard]] std::optional<p2p::LaneId> lane_of(const void* memory,
                                                   std::int64_t bytes) const override {
    return messages()->lane_of(memory, bytes);
  }
  [[nodiscard]] const Device& device(p2p::LaneId lane) const override {
    return messages()->device(lane);
  }
  [[nodiscard]] std::shared_ptr<std::byte> scratch(p2p::LaneId lane, std::int64_t bytes) override {
    return messages()->scratch().take(lane, static_cast<std::size_t>(bytes), user_);
  }
  [[nodiscard]] std::shared_ptr<std::byte> locked_host(p2p::LaneId lane,
                                                       std::int64_t bytes) override {
    return messages()->locked_scratch().take(lane, static_cast<std::size_t>(bytes));
  }
  [[nodiscard]] std::shared_ptr<std::byte> host(std::int64_t bytes) override;
  [[nodiscard]] const HostMemoryInUse& host_memory() const { return *host_memory_; }
  /// Allocated for this group's operations.
  [[nodiscard]] std::int64_t scratch_bytes(p2p::LaneId lane) const { return user_->bytes(lane); }
  void run(const std::vector<Stage>& stages) override;
  [[nodiscard]] std::shared_ptr<UserMessages> messages_if_alive() const { return messages_.lock(); }
  [[nodiscard]] std::shared_ptr<UserMessages> messages() const {
    if (auto found = messages_.lock()) return found;
    throw Error(ErrorCode::usage, "a group of a node is used, but the node has ended");
  }

 private:
  std::weak_ptr<UserMessages> messages_;
  std::shared_ptr<DeviceScratch::User> user_;
  std::shared_ptr<HostMemoryInUse> host_memory_ = std::make_shared<HostMemoryInUse>();
};

}  // namespace heddle::collectives
