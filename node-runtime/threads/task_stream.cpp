#include <array>
#include <bit>
#include <cstdint>
#include <mutex>

#include "base/assert.hpp"
#include "node-runtime/threads/engine.hpp"

/// What a program's calls do: they are listened to, generate under the engine's lock, or come from
/// a user's thread.
namespace heddle {

using protocol::Actions;

TaskStream::Room TaskStream::insert_all(const Kernel& kernel, const TaskOptions& options,
                                        std::span<const protocol::Access> accesses) {
  if (listener_ != nullptr) {
    listener_->insert(kernel, options, accesses);
    return {this};
  }
  protocol::Work work;
  work.kernel = &kernel;
  work.parameters = std::bit_cast<std::array<std::uint64_t, 4>>(options.parameters);
  work.info_base = options.info_base;
  if (blocking_) {
    engine_->wait_for_turn(*job_);
    Engine::Wakes wakes;
    {
      const std::lock_guard lock(engine_->mutex_);
      engine_->insert_locked(*job_, work, options.priority, accesses);
      wakes = engine_->apply();
      engine_->update_ready_hint();
    }
    engine_->ring(wakes);
    return {this};
  }
  HEDDLE_CHECK(!job_->handle->window_is_full(),
               "'{}' inserts without co_await: the window of {} is full", job_->spec.name,
               job_->handle->window);
  engine_->insert_locked(*job_, work, options.priority, accesses);
  --quantum_left_;
  return {this};
}

TaskStream::Room TaskStream::announce(const protocol::Access& access, NodeId reader,
                                      std::int32_t priority) {
  if (listener_ != nullptr) {
    listener_->announce(access, reader, priority);
  } else {
    HEDDLE_CHECK(!blocking_, "a user's stream is walked in full by every node");
    engine_->protocol_.append_alien_reader(*job_->handle, access, reader, priority,
                                           engine_->actions_);
    --quantum_left_;
  }
  return {this};
}

void TaskStream::release(const protocol::Access& access) {
  if (listener_ != nullptr) {
    listener_->release(access);
  } else if (blocking_) {
    engine_->deliver([&](protocol::Protocol& protocol, Actions& actions) {
      protocol.release(*job_->handle, access, actions);
    });
  } else {
    engine_->protocol_.release(*job_->handle, access, engine_->actions_);
  }
}

bool TaskStream::has_room() const {
  if (listener_ != nullptr) return listener_->has_room();
  if (blocking_) return true;
  return quantum_left_ > 0 && !job_->handle->window_is_full();
}

}  // namespace heddle
