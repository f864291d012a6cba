#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heddle::trace {

/// A new file, written sequentially through a buffer. Not thread-safe. Does not fsync: a trace need
/// not survive a crash of the machine.
class FileSink {
 public:
  /// Creates or truncates `path`; `name` is used in errors. Throws Error(usage) with the system's
  /// reason.
  FileSink(const std::string& path, std::string name);
  explicit FileSink(const std::string& path) : FileSink(path, path) {}
  /// Takes over an open file descriptor.
  FileSink(int file, std::string name);
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  /// Closes the file; unflushed data is lost.
  ~FileSink();

  /// Appends. Throws Error with the system's reason (code_of_write_failure()).
  void write(std::span<const std::byte> bytes);
  /// Passes all data to the system, so that it survives this process. Throws Error.
  void flush();
  /// Flushes and closes; the last call. Throws Error.
  void close();

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

  void write_through(std::span<const std::byte> bytes) const;
  [[noreturn]] void fail(int error) const;

  std::string name_;
  std::vector<std::byte> buffer_;
  int file_ = -1;
};

/// Throws Error(usage) if `path` exists and is not a regular file.
void refuse_what_is_no_file(const std::string& path);

}  // namespace heddle::trace
