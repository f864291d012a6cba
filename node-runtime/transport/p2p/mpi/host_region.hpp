#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/types.h>
#include <utility>

#include "node-runtime/transport/p2p/mpi/note_ring.hpp"

namespace heddle::p2p {

/// Memory of one process that the others of its host map too: an anonymous file (memfd), which has
/// no name, so that none remains, and is opened through /proc/PID/fd. It holds a ring of
/// notes from each process of the host, and the window that endpoints use.
class HostRegion {
 public:
  /// How others find it.
  struct Name {
    std::int64_t pid = 0;
    std::int64_t fd = -1;
    std::uint64_t cookie = 0;  ///< tells it from whatever else may have these numbers
    std::uint64_t writers = 0;
    std::uint64_t window_bytes = 0;
  };

  /// This process's own. Throws Error(internal) when the system has none.
  HostRegion(std::size_t writers, std::size_t window_bytes);
  /// Another process's. Throws Error(communication) with the reason when it cannot be mapped.
  explicit HostRegion(const Name& name);
  HostRegion(HostRegion&& other) noexcept
      : name_(other.name_),
        fd_(std::exchange(other.fd_, -1)),
        base_(std::exchange(other.base_, nullptr)),
        bytes_(other.bytes_) {}
  HostRegion& operator=(HostRegion&&) = delete;
  HostRegion(const HostRegion&) = delete;
  HostRegion& operator=(const HostRegion&) = delete;
  ~HostRegion();

  [[nodiscard]] const Name& name() const { return name_; }
  /// The ring of notes that process `writer` writes, by its number among the host's processes.
  [[nodiscard]] NoteRingMemory* ring(std::size_t writer) const;
  [[nodiscard]] std::span<std::byte> window() const;

 private:
  void map();

  Name name_;
  int fd_ = -1;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace heddle::p2p
