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
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/threads/tile_part.hpp"

namespace heddle {

class Engine;
struct JobRecord;
struct JobSpec;

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

/// A tile as programs name it: what the protocol calls it and where it lives.
struct TileRef {
  protocol::TileId id;
  Location home;
};

/// How a task accesses a tile. `version` counts writes to the tile since the job began; a program
/// that every node walks in full leaves it out, a pruned one states it for tiles that live on other
/// nodes.
[[nodiscard]] inline protocol::Access read(TileRef tile, Version version = protocol::count_here) {
  return {tile.id, tile.home, protocol::AccessMode::read, version};
}
[[nodiscard]] inline protocol::Access write(TileRef tile, Version version = protocol::count_here) {
  return {tile.id, tile.home, protocol::AccessMode::write, version};
}
[[nodiscard]] inline protocol::Access read_write(TileRef tile,
                                                 Version version = protocol::count_here) {
  return {tile.id, tile.home, protocol::AccessMode::read_write, version};
}

struct TaskOptions {
  KernelParameters parameters{};
  std::int32_t priority = 0;   ///< 0 .. 1023, higher is more urgent
  std::int64_t info_base = 0;  ///< added to the index that the kernel returns when it fails
};

/// Who hears what a program does when it is walked without being run: the plan, a test, a
/// simulator.
class ProgramListener {
 public:
  ProgramListener() = default;
  ProgramListener(const ProgramListener&) = delete;
  ProgramListener& operator=(const ProgramListener&) = delete;
  virtual ~ProgramListener() = default;

  virtual void insert(const Kernel& kernel, const TaskOptions& options,
                      std::span<const protocol::Access> accesses) = 0;
  virtual void announce(const protocol::Access& access, NodeId reader, std::int32_t priority) = 0;
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
      return stream->has_room();
    }
    void await_suspend(std::coroutine_handle<> /*program*/) const {}
    void await_resume() const {}
  };

  /// Tells `listener` what the program does on `node`. `spec`: the program's, for what its tasks
  /// may access; null: any matrix.
  TaskStream(ProgramListener& listener, NodeId node, const JobSpec* spec = nullptr)
      : listener_(&listener), spec_(spec), node_(node) {}
  /// Generates, with the engine's lock held by the caller.
  TaskStream(Engine& engine, JobRecord& job, NodeId node);

  [[nodiscard]] NodeId node() const { return node_; }

  /// The next task of the program: `kernel` on `accesses`, the main output first. Does nothing on
  /// nodes that the task does not concern. Write `co_await tasks.insert(...)`.
  ///
  /// Throws Error(usage) that names job and kernel when there is no access, more than
  /// protocol::accesses_max, no main output, a tile twice that the task writes, or a tile of a
  /// matrix that the job does not list.
  template <class... Accesses>
  requires(std::is_same_v<Accesses, protocol::Access>&&...) Room
      insert(const Kernel& kernel, const TaskOptions& options, const Accesses&... accesses) {
    const std::array<protocol::Access, sizeof...(Accesses)> all{accesses...};
    return insert_all(kernel, options, all);
  }
  template <class... Accesses>
  requires(std::is_same_v<Accesses, protocol::Access>&&...) Room
      insert(const Kernel& kernel, const Accesses&... accesses) {
    return insert(kernel, TaskOptions{}, accesses...);
  }
  /// The same for a number of accesses that is not known when compiling.
  Room insert_all(const Kernel& kernel, const TaskOptions& options,
                  std::span<const protocol::Access> accesses);

  /// Stands still until there is room for the next item; for programs that walk others.
  Room room() { return {this}; }

  /// Pruned walk: tasks that this node does not walk read the tile, which lives here, on `reader`.
  /// May be repeated.
  ///
  /// Must stand where the first of those tasks stands in the sequential program. What is announced
  /// waits for its receiver, and what comes after it in this node's walk may wait for it: announced
  /// too early, two nodes whose pools are at their minimum could each wait for what the other one
  /// only does later (protocol::BlockPool).
  Room announce(const protocol::Access& access, NodeId reader, std::int32_t priority);

  /// No later task reads this version of the tile in this job, other than where it lives: copies of
  /// it are given up.
  void release(const protocol::Access& access);

 private:
  friend class Engine;
  [[nodiscard]] bool has_room() const;
  void check(const Kernel& kernel, std::span<const protocol::Access> accesses) const;

  ProgramListener* listener_ = nullptr;
  Engine* engine_ = nullptr;
  JobRecord* job_ = nullptr;
  const JobSpec* spec_ = nullptr;
  NodeId node_;
  bool blocking_ = false;          ///< inserted to by a user's thread, without the lock
  std::int32_t quantum_left_ = 0;  ///< insertions until the generation thread gives the lock back
};

/// What `Node::submit` takes: a program and what it is about.
struct JobSpec {
  std::string name;                               ///< for progress and errors: "cholesky"
  std::function<Program(TaskStream&)> program;    ///< called twice and more, see TaskStream
  std::vector<protocol::MatrixId> matrices;       ///< all that it uses
  std::vector<protocol::MatrixId> temporaries;    ///< of these, the temporary ones
  std::vector<std::shared_ptr<void>> keep_alive;  ///< whatever must live as long as the job
  /// What other nodes need of this version of a tile, all of them together; nothing else travels,
  /// and the rest of the tile is undefined where it arrives. That holds for a tile's own home too
  /// when another node writes it (a minor output). Empty: whole tiles. Versions count writes since
  /// the job began. Must be pure, the same on all nodes, and not throw; any thread may call it.
  std::function<TilePart(protocol::TileId, Version)> part;
  /// Out of core, tiles are not fetched for tasks whose priority is lower by more than this than
  /// that of what is under way: fetching them early would drive out what is needed sooner.
  std::int32_t priority_span = std::numeric_limits<std::int32_t>::max();
  /// CPU workers divide tasks into fine ones on parts of at most so many rows and columns, and run
  /// them together (000 section 3.2); 0: they run tasks whole. The same on all nodes, for equal
  /// bits.
  std::int64_t fine = 0;
};

}  // namespace heddle
