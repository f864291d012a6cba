#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "base/assert.hpp"
#include "base/require.hpp"
#include "node-runtime/threads/engine.hpp"

/// What a program's calls do: they are listened to, generate under the engine's lock, or come from
/// a user's thread.
namespace heddle {

using protocol::Actions;

TaskStream::TaskStream(Engine& engine, JobRecord& job, NodeId node)
    : engine_(&engine), job_(&job), spec_(&job.spec), node_(node) {}

/// The contract of insert(); accesses are few.
void TaskStream::check(const Kernel& kernel, std::span<const protocol::Access> accesses) const {
  const auto job = [&] { return spec_ == nullptr ? std::string_view("a job") : spec_->name; };
  require(!accesses.empty() && accesses.size() <= protocol::accesses_max,
          "'{}' inserts '{}' with {} accesses; a task has 1 to {}", job(), kernel.name,
          accesses.size(), protocol::accesses_max);
  require(accesses.front().mode != protocol::AccessMode::read,
          "'{}' inserts '{}' whose first access only reads; it must be the task's main output",
          job(), kernel.name);
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const protocol::TileId tile = accesses[i].tile;
    const NodeId node = accesses[i].home.node;
    require(engine_ == nullptr || node.value() < engine_->options().node_count,
            "'{}' inserts '{}' on a tile of node {}; there are {} nodes", job(), kernel.name,
            node.value(), engine_ == nullptr ? 0 : engine_->options().node_count);
    for (std::size_t j = 0; j < i; ++j) {
      const bool both_read = accesses[i].mode == protocol::AccessMode::read &&
                             accesses[j].mode == protocol::AccessMode::read;
      require(accesses[j].tile != tile || both_read,
              "'{}' inserts '{}' that writes tile {} of matrix {} and accesses it twice; one "
              "access can read and write",
              job(), kernel.name, tile.index, tile.matrix.value());
    }
    require(spec_ == nullptr ||
                std::ranges::find(spec_->matrices, tile.matrix) != spec_->matrices.end(),
            "'{}' inserts '{}' on matrix {}, which is not among the matrices of the job", job(),
            kernel.name, tile.matrix.value());
  }
}

TaskStream::Room TaskStream::insert(const Kernel& kernel, const AccessList& list,
                                    const TaskOptions& options) {
  const std::span<const protocol::Access> accesses = list.all();
  check(kernel, accesses);
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
  require(!job_->handle->window_is_full(),
          "'{}' inserts without co_await: the window of {} is full", job_->name,
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
    require(!blocking_, "'{}' announces a reader; every node inserts all tasks of a user's stream",
            job_->name);
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
