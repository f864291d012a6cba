#pragma once

#include <cstddef>

namespace heddle {

/// Outlives what a mapped file may lose while it is read: its end when somebody shortens it, any
/// page when the disk or the network file system fails. The system answers a look at such a page
/// with SIGBUS; the guard puts zeros in its place, up to the mapping's end, and `is_broken` says so
/// from then on.
///
/// Signals have one handler in a process, so what is guarded is known to the whole process. The
/// handler comes with the first guard; a SIGBUS elsewhere is left to who was there before.
class MappingGuard {
 public:
  /// The mapping begins at a page.
  MappingGuard(void* begin, std::size_t bytes);
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;
  /// Before the mapping ends.
  ~MappingGuard();

  /// Any thread. What a thread has read before it asks is the file's where this is false.
  [[nodiscard]] bool is_broken() const;

  struct Slot;

 private:
  Slot* slot_;
};

}  // namespace heddle
