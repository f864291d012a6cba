#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/device/emulated/gpu_words.hpp"

/// Memory of an emulated device: an anonymous shared memory file (memfd) with a header, the event
/// slots, and the device's memory. The file has no name, so nothing is left behind however the
/// process ends; other processes of the same user open it through /proc/PID/fd.
namespace heddle {

/// State of one event, in shared memory. `submitted` and `completed` count records and are never
/// reset, even when the slot passes to another event, so a waiter that holds a number never waits
/// for a later event.
///
/// Invariant: completed <= submitted; failed <= completed except while a failing record completes.
struct EventSlot {
  static constexpr std::size_t message_words = 27;

  std::atomic<std::uint64_t> submitted;  ///< written only by the recording process
  std::atomic<std::uint64_t> completed;
  std::atomic<std::uint64_t> failed;       ///< number of the last failed record
  std::atomic<std::int64_t> completed_ns;  ///< time at which `completed` was written
  std::atomic<std::uint32_t> wake;         ///< futex word, changed after `completed`
  std::atomic<std::uint32_t> generation;   ///< of the event in the slot; odd while it lives
  /// Text of the first failure, zero-filled. Relaxed words published by `completed`; a reader that
  /// is late by a whole event may see a newer failure's text or a mixture.
  std::array<std::atomic<std::uint64_t>, message_words> message;
};
static_assert(sizeof(EventSlot) == 256);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "words shared between processes must not hide a lock");

/// At the start of the file.
struct ArenaHeader {
  static constexpr std::uint64_t expected_magic = 0x68656464'6c653031;  ///< "heddle01"

  std::uint64_t magic = expected_magic;
  DeviceUuid uuid;
  std::uint64_t event_capacity = 0;
  std::uint64_t events_offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t data_bytes = 0;
  std::atomic<std::uint32_t> closed{0};  ///< 1: the device is destroyed
  GpuWords gpu{};                        ///< of the GPU that the device is
};

/// A mapped range of a file; unmapped by its destructor.
class Mapping {
 public:
  /// `offset` need not be aligned. Throws Error(communication) with `what`.
  Mapping(int fd, std::uint64_t offset, std::uint64_t bytes, bool writable, std::string_view what);
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        mapped_bytes_(other.mapped_bytes_),
        address_(other.address_) {}
  Mapping& operator=(Mapping&&) = delete;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  [[nodiscard]] std::byte* address() const { return address_; }

 private:
  void* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* address_ = nullptr;  ///< address of `offset`
};

/// The owner's view of the file. Thread-safe.
class SharedArena {
 public:
  SharedArena(std::uint64_t data_bytes, std::uint32_t event_capacity, const std::string& name);
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;
  ~SharedArena();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t data_bytes() const { return header_->data_bytes; }
  [[nodiscard]] std::uint64_t data_offset() const { return header_->data_offset; }
  [[nodiscard]] const DeviceUuid& uuid() const { return header_->uuid; }
  /// Before anything of the device is exported.
  void set_uuid(const DeviceUuid& uuid) { header_->uuid = uuid; }
  [[nodiscard]] GpuWords& gpu() const { return header_->gpu; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] EventSlot& slot(std::uint32_t index) const { return slots_[index]; }

  /// A slot for a new event, in the complete state. Throws Error(internal) if all are in use.
  [[nodiscard]] std::uint32_t acquire_slot();
  void release_slot(std::uint32_t index);

  /// Returns the pages that lie wholly in the range to the system.
  void discard(std::uint64_t data_offset, std::uint64_t bytes) const;

  /// Tells importers that no further record will complete.
  void close() const { header_->closed.store(1, std::memory_order_release); }

 private:
  int fd_;
  std::unique_ptr<Mapping> mapping_;
  ArenaHeader* header_ = nullptr;
  EventSlot* slots_ = nullptr;
  std::byte* data_ = nullptr;
  std::mutex mutex_;                       ///< protects the members below
  std::uint32_t slots_used_ = 0;           ///< slots from here on were never used
  std::vector<std::uint32_t> free_slots_;  ///< below slots_used_
};

/// Another process's file.
class PeerArena {
 public:
  /// Throws Error(communication) if the file is missing, is not the one that `uuid` names, or may
  /// not be opened; the message begins with `what`.
  PeerArena(pid_t pid, int fd, const DeviceUuid& uuid, std::string_view what);
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;
  ~PeerArena();

  [[nodiscard]] const ArenaHeader& header() const;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Whether the exporting process still runs and has not destroyed the device.
  [[nodiscard]] bool is_alive() const;

 private:
  pid_t pid_;
  std::string path_;  ///< path of the file through the exporting process
  int fd_ = -1;
  dev_t file_device_ = 0;
  ino_t file_inode_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::unique_ptr<Mapping> header_;
};

/// Sleeps until `word` differs from `expected`, a wake-up, or `timeout`; works across processes.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds timeout);
void futex_wake_all(std::atomic<std::uint32_t>& word);

}  // namespace heddle
