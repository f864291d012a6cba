#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "kernels/kernel.hpp"
#include "node-runtime/tasks.hpp"
#include "node-runtime/threads/tile_part.hpp"

namespace heddle {

/// A sequential program that inserts tasks, as a coroutine: it stands still at `co_await
/// tasks.insert(...)` while the window is full, so that one task generation thread can walk several
/// programs (DESIGN D7).
class Program {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language wants this name
    std::exception_ptr error;
    Program get_return_object() {
      return Program(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  Program() = default;
  Program(Program&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Program& operator=(Program&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (handle_) handle_.destroy();
  }

  /// Walks on to the next stand. False once the end is reached; rethrows what the program threw.
  bool resume() {
    handle_.resume();
    if (!handle_.done()) return true;
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return false;
  }

 private:
  explicit Program(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

/// Hears what a program does, insertion by insertion: the plan, the generation thread's batch, a
/// user's stream, a test, a simulator.
class ProgramListener {
 public:
  ProgramListener() = default;
  ProgramListener(const ProgramListener&) = delete;
  ProgramListener& operator=(const ProgramListener&) = delete;
  virtual ~ProgramListener() = default;

  virtual void insert(const Kernel& kernel, const TaskOptions& options,
                      std::span<const protocol::Access> accesses) = 0;
  // What is only planned need not know to whom versions go.
  virtual void announce(const protocol::Access& /*access*/, NodeId /*reader*/,
                        std::int32_t /*priority*/) {}
  virtual void publish(const protocol::Access& /*access*/,
                       std::span<const protocol::Reader> /*readers*/) {}
  virtual void release(const protocol::Access& access) = 0;
  /// False: the program stands still after this item, until it is resumed.
  [[nodiscard]] virtual bool has_room() const { return true; }
};

/// Where a program puts its tasks. The same program is walked once to plan (blocks per place,
/// counts) and once to run; priorities by the longest path take one walk per node. Used by one
/// thread at a time.
class TaskStream {
 public:
  /// What `insert` returns: awaiting it stands still until there is room for the next item.
  struct [[nodiscard("co_await it: a program must stand still while its window is full")]] Room {
    TaskStream* stream;
    [[nodiscard]] bool await_ready() const {
      return stream->listener_->has_room();
    }
    void await_suspend(std::coroutine_handle<> /*program*/) const {}
    void await_resume() const {}
  };

  /// What a program's tasks may access; unknown where it is left out.
  struct Bounds {
    const JobSpec* spec = nullptr;  ///< the matrices
    std::int32_t nodes = 0;
  };

  /// Tells `listener` what the program does on `node`.
  TaskStream(ProgramListener& listener, NodeId node) : TaskStream(listener, node, Bounds{}) {}
  TaskStream(ProgramListener& listener, NodeId node, const Bounds& bounds)
      : listener_(&listener), bounds_(bounds), node_(node) {}

  [[nodiscard]] NodeId node() const { return node_; }

  /// The next task of the program: `kernel` on `accesses`, the main output first. Does nothing on
  /// nodes that the task does not concern. Write `co_await tasks.insert(...)`.
  ///
  /// Throws Error(usage) that names job and kernel when there is no access, more than
  /// protocol::accesses_max, no main output, a tile twice that the task writes, or a tile of a
  /// matrix that the job does not list.
  Room insert(const Kernel& kernel, const AccessList& accesses, const TaskOptions& options = {});

  /// Stands still until there is room for the next item; for programs that walk others.
  Room room() { return {this}; }

  /// Pruned walk: tasks that this node does not walk read this version of the tile, which lives
  /// here, on `reader`. May stand anywhere behind the task that writes the version and before the
  /// one that writes the next, or its release. May be repeated.
  void announce(const protocol::Access& access, NodeId reader, std::int32_t priority);

  /// Pruned walk, instead of announcements, with the version stated: it goes to the readers that
  /// the job knows (JobSpec::readers). False: it knows none. May stand where an announcement may,
  /// and on the nodes that read it, where it throws Error(usage) when the job does not know that.
  bool publish(const protocol::Access& access);

  /// No later task reads this version of the tile in this job, other than where it lives: copies of
  /// it are given up.
  void release(const protocol::Access& access);

 private:
  void check(const Kernel& kernel, std::span<const protocol::Access> accesses) const;

  ProgramListener* listener_;
  Bounds bounds_;
  NodeId node_;
};

}  // namespace heddle
