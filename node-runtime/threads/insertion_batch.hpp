#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

struct JobRecord;

/// What a program inserts while it is walked without the engine's lock, in order, until the
/// generation thread hands it to the protocol under the lock.
///
/// Invariant: insertions <= quantum and items <= room, but for what the program inserts without
/// awaiting the stream; items bounds from above the items that the protocol makes of the
/// insertions, so that the job's window is not full before any of them. The accesses of the entries
/// follow each other without gaps.
///
/// A call that throws Error(usage) or std::bad_alloc changes nothing.
///
/// Thread: the generation thread.
class InsertionBatch final : public ProgramListener {
 public:
  InsertionBatch(JobRecord& job, NodeId node) : job_(job), node_(node) {}

  /// Forgets what it holds. The program may insert `quantum` times, and items of the protocol up to
  /// `room`, what its window has left; both at least 1.
  void begin(std::int32_t quantum, std::int32_t room);
  /// Calls the protocol for each insertion in order. With the engine's lock.
  void hand_over(protocol::Protocol& protocol, protocol::Actions& actions) const;

  void insert(const Kernel& kernel, const TaskOptions& options,
              std::span<const protocol::Access> accesses) override;
  void announce(const protocol::Access& access, NodeId reader, std::int32_t priority) override;
  void publish(const protocol::Access& access, std::span<const protocol::Reader> readers) override;
  void release(const protocol::Access& access) override;
  [[nodiscard]] bool has_room() const override { return insertions_ < quantum_ && items_ < room_; }

  [[nodiscard]] bool is_valid() const;

 private:
  struct Entry {
    enum class Kind : std::uint8_t { task, reader, publication, release };
    Kind kind = Kind::task;
    std::int32_t priority = 0;
    std::size_t first_access = 0;  ///< in accesses_
    std::size_t access_count = 1;
    std::size_t first_reader = 0;  ///< in readers_; one, or those of a publication
    std::size_t reader_count = 0;
    protocol::Work work;
  };

  void check_room(std::string_view what) const;
  void add(Entry entry, std::span<const protocol::Access> accesses,
           std::span<const protocol::Reader> readers = {});

  JobRecord& job_;
  NodeId node_;
  std::vector<Entry> entries_;
  std::vector<protocol::Access> accesses_;  ///< of the entries, one after another
  std::vector<protocol::Reader> readers_;   ///< likewise
  std::int32_t quantum_ = 1;
  std::int32_t room_ = 1;
  std::int32_t insertions_ = 0;  ///< tasks, and what goes to others
  std::int32_t items_ = 0;       ///< that the protocol may make of them, at most
};

}  // namespace heddle
