#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/require.hpp"

namespace heddle {

class Engine;

/// The way from handles (matrices, jobs, streams) to their node, which they may outlive.
///
/// Invariant: state = 2 * (uses that exist) + (1 once cut). cut() returns when no use exists, and
/// no use begins after that, so an engine that a use names exists.
///
/// No deadlock: a use lasts as long as one call of a handle. A call that waits for the node ends
/// when the node fails, and the node fails before it cuts the link (Node::Parts::~Parts). The
/// caller of cut() holds no use.
class EngineLink {
 public:
  explicit EngineLink(Engine& engine) : engine_(&engine) {}
  EngineLink(const EngineLink&) = delete;
  EngineLink& operator=(const EngineLink&) = delete;
  ~EngineLink() = default;

  /// Keeps the engine alive. False: the node has ended.
  class Use {
   public:
    explicit Use(EngineLink& link) : link_(link.enter() ? &link : nullptr) {}
    Use(Use&& other) noexcept : link_(std::exchange(other.link_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (link_ != nullptr) link_->leave();
    }
    [[nodiscard]] explicit operator bool() const { return link_ != nullptr; }
    [[nodiscard]] Engine& operator*() const { return *link_->engine_; }
    [[nodiscard]] Engine* operator->() const { return link_->engine_; }

   private:
    EngineLink* link_;
  };

  /// For destructors, which do nothing where the node has ended. Any thread.
  [[nodiscard]] Use try_use() { return Use(*this); }
  /// Throws Error(usage) that names the handle where the node has ended. Any thread.
  [[nodiscard]] Use use(std::string_view handle) {
    Use result(*this);
    require(static_cast<bool>(result), "{} was used after its node had ended", handle);
    return result;
  }
  /// The node ends: waits for the uses that exist. Once.
  void cut() {
    HEDDLE_CHECK((state_.fetch_or(cut_bit, std::memory_order_acq_rel) & cut_bit) == 0);
    // Acquire pairs with the release in leave(): what the last use did comes before the engine's
    // end.
    for (;;) {
      const std::uint64_t state = state_.load(std::memory_order_acquire);
      if (state == cut_bit) return;
      state_.wait(state, std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint64_t cut_bit = 1;
  static constexpr std::uint64_t one_use = 2;

  /// Acquire-release, as cut(): of a use and a cut, one sees the other.
  bool enter() {
    if ((state_.fetch_add(one_use, std::memory_order_acq_rel) & cut_bit) == 0) return true;
    leave();
    return false;
  }
  void leave() {
    if (state_.fetch_sub(one_use, std::memory_order_release) == one_use + cut_bit) {
      state_.notify_all();
    }
  }

  Engine* engine_;
  std::atomic<std::uint64_t> state_{0};
};

}  // namespace heddle
