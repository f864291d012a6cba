#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle::p2p {

/// A place in some node's device memory, as notes tell of it.
struct MemoryReference {
  IpcMemoryHandle handle;     ///< of the allocation's first byte
  std::uint64_t offset = 0;   ///< of the place
  std::uint64_t address = 0;  ///< of the place, in the exporting process
};
static_assert(std::is_trivially_copyable_v<MemoryReference> && sizeof(MemoryReference) == 152);

/// Throws Error(internal) unless `address` is in an allocation of `device`.
[[nodiscard]] MemoryReference refer_to(Device& device, const std::byte* address);

/// Handles of this node's allocations that were used last, since making one takes longer than
/// finding it. Each allocation has an identity of its own, so a cached handle is never stale.
class RecentHandles {
 public:
  /// As above.
  [[nodiscard]] MemoryReference refer_to(Device& device, const std::byte* address);

 private:
  std::array<IpcMemoryHandle, 32> handles_{};  ///< by allocation; of 0 bytes: none
};

/// Memory of another node, as operations of this node's devices name it.
struct MappedMemory {
  std::byte* address = nullptr;
  const Device* device = nullptr;  ///< that it counts as the memory of
};

/// Opens other processes' device memory. Tests replace it, with several nodes in one process.
class Mapper {
 public:
  Mapper() = default;
  Mapper(const Mapper&) = delete;
  Mapper& operator=(const Mapper&) = delete;
  virtual ~Mapper() = default;

  /// The allocation's first byte, for streams of `via`. Throws Error(communication) when the system
  /// refuses.
  [[nodiscard]] virtual MappedMemory open(Device& via, const MemoryReference& memory);
  virtual void close(Device& via, const MappedMemory& memory);
};

/// Mappings of other nodes' memory: each is opened once and kept by the identity of its allocation,
/// not its address, until it is evicted, its owner takes it back, or the owner is lost.
///
/// At most `mappings_max` are kept; more are open only while all of them are in use.
///
/// Invariant: entries_ is ordered from the most recently used; one entry for each key.
///
/// Thread: the progress thread.
class Mappings {
 public:
  struct Statistics {
    std::int64_t opened = 0;
    std::int64_t closed = 0;
    std::int64_t found = 0;  ///< uses of mappings that were there
  };
  /// Keeps a mapping open as long as it lives.
  class Use;

  Mappings(Mapper& mapper, std::int32_t mappings_max)
      : mapper_(mapper), max_(static_cast<std::size_t>(mappings_max)) {}
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;
  /// Closes all; none is in use.
  ~Mappings();

  /// The allocation, opened if it is not yet. Throws Error(communication).
  [[nodiscard]] std::shared_ptr<const Use> use(NodeId node, Device& via,
                                               const MemoryReference& memory);
  /// It is open already.
  [[nodiscard]] bool has(NodeId node, const Device& via, const MemoryReference& memory);

  /// The owner takes the allocation back: closed at once, or when its last use ends; `closed` is
  /// called then, or now if it was not open.
  void release(NodeId node, const DeviceUuid& device, std::uint64_t allocation,
               std::function<void()> closed);
  /// Closes what is not in use, of one node or of all.
  void close(std::optional<NodeId> node);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }

 private:
  struct Entry {
    NodeId node;
    Device* via = nullptr;
    DeviceUuid device;
    std::uint64_t allocation = 0;
    MappedMemory memory;  ///< the allocation's begin
    std::weak_ptr<const Use> use;
    bool is_doomed = false;
    std::vector<std::function<void()>> when_closed;
  };
  using Entries = std::list<Entry>;

  [[nodiscard]] Entries::iterator find(NodeId node, const Device& via,
                                       const IpcMemoryHandle& handle);
  Entries::iterator close(Entries::iterator entry);
  void ended(Entries::iterator entry);
  void make_room();

  Mapper& mapper_;
  std::size_t max_;
  Entries entries_;
  Statistics statistics_;
};

class Mappings::Use {
 public:
  Use(Mappings& mappings, Entries::iterator entry) : mappings_(mappings), entry_(entry) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { mappings_.ended(entry_); }

  /// Byte `offset` of the allocation.
  [[nodiscard]] MappedMemory at(std::uint64_t offset) const;

 private:
  Mappings& mappings_;
  Entries::iterator entry_;
};

}  // namespace heddle::p2p
