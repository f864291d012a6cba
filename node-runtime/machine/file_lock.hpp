#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

namespace heddle {

/// Exclusive among the processes of this host for as long as it lives, by flock() on a file of its
/// own that exists only while somebody holds or wants the lock. The death of the holder frees it.
class FileLock {
 public:
  /// Waits until the lock is free, at most `patience`; nothing when it is still taken then. Throws
  /// Error(usage) when the file cannot be made, naming it and the reason.
  [[nodiscard]] static std::optional<FileLock> acquire(const std::filesystem::path& path,
                                                       std::chrono::milliseconds patience);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  int file_;
};

}  // namespace heddle
