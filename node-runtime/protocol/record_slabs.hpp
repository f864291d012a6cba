#pragma once

#include <cstddef>

#include "base/assert.hpp"
#include "node-runtime/protocol/records.hpp"
#include "node-runtime/protocol/slab.hpp"

namespace heddle::protocol {

/// Slabs of tasks by operand count: most tasks have few operands, and task records dominate the
/// memory of the protocol.
class TaskRecords {
 public:
  [[nodiscard]] Task* create(std::size_t operand_count) {
    if (operand_count <= few) return few_.create();
    if (operand_count <= some) return some_.create();
    HEDDLE_DEBUG(operand_count <= accesses_max, "{} operands", operand_count);
    return many_.create();
  }
  void destroy(Task* task) {
    if (task->operand_count <= few) return few_.destroy(static_cast<Roomy<few>*>(task));
    if (task->operand_count <= some) return some_.destroy(static_cast<Roomy<some>*>(task));
    many_.destroy(static_cast<Roomy<accesses_max>*>(task));
  }
  [[nodiscard]] std::size_t in_use() const {
    return few_.in_use() + some_.in_use() + many_.in_use();
  }
  [[nodiscard]] std::size_t bytes() const { return few_.bytes() + some_.bytes() + many_.bytes(); }
  void abandon() {
    few_.abandon();
    some_.abandon();
    many_.abandon();
  }

 private:
  static constexpr std::size_t few = 3;   // products
  static constexpr std::size_t some = 5;  // updates by reflectors

  template <std::size_t Count>
  struct Roomy final : Task {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): operands are constructed one by one
    Roomy() { operands = Operands(room); }  // NOLINT(*-prefer-member-initializer): of the base
    alignas(Operand) std::byte room[Count * sizeof(Operand)];
  };

  Slab<Roomy<few>> few_;
  Slab<Roomy<some>> some_;
  Slab<Roomy<accesses_max>> many_;
};

/// All records of a node's jobs but the versions of its own tiles.
struct RecordSlabs {
  TaskRecords tasks;
  Slab<RemoteVersion> remote_versions;
  Slab<Replica> replicas;
  Slab<Scratch> scratches;
  Slab<TemporaryBlock> temporaries;
  Slab<Send> sends;
  Slab<Sink> sinks;

  [[nodiscard]] std::size_t in_use() const {
    return tasks.in_use() + remote_versions.in_use() + replicas.in_use() + scratches.in_use() +
           temporaries.in_use() + sends.in_use() + sinks.in_use();
  }
  [[nodiscard]] std::size_t bytes() const {
    return tasks.bytes() + remote_versions.bytes() + replicas.bytes() + scratches.bytes() +
           temporaries.bytes() + sends.bytes() + sinks.bytes();
  }
  /// For a shutdown after a failure: the remaining records are dropped with the slabs.
  void abandon() {
    tasks.abandon();
    remote_versions.abandon();
    replicas.abandon();
    scratches.abandon();
    temporaries.abandon();
    sends.abandon();
    sinks.abandon();
  }
};

}  // namespace heddle::protocol
