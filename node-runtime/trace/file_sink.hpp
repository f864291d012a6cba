#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heddle::trace {

/// A file that is made anew and written front to back, through a buffer. One thread at a time. Not
/// synchronised with the disk: a trace need not outlive the machine.
class FileSink {
 public:
  /// Makes the file `path`, or empties it; `name` is what errors call it. Throws Error(usage) with
  /// the system's reason.
  FileSink(const std::string& path, std::string name);
  explicit FileSink(const std::string& path) : FileSink(path, path) {}
  /// Takes a file that is open.
  FileSink(int file, std::string name);
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  /// Closes it; what was not flushed is lost.
  ~FileSink();

  /// Appends. Throws Error with the system's reason (code_of_write_failure(): a full disk).
  void write(std::span<const std::byte> bytes);
  /// What was written is the system's now: it outlives this process. Throws Error likewise.
  void flush();
  /// Flushes; the last call. Throws Error likewise.
  void close();

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

  void write_through(std::span<const std::byte> bytes) const;
  [[noreturn]] void fail(int error) const;

  std::string name_;
  std::vector<std::byte> buffer_;
  int file_ = -1;
};

/// Throws Error(usage) when `path` is there and no regular file.
void refuse_what_is_no_file(const std::string& path);

}  // namespace heddle::trace
