#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "node-runtime/trace/file_sink.hpp"

namespace heddle::trace {

/// A file that appears under its name at once and complete, or not at all: written under a
/// temporary name beside it ("x.json.<process id>.heddle-part") and renamed. An older file of the
/// name stays until then. One thread.
class AtomicFile {
 public:
  /// Throws Error(usage) that names the file and the reason when it cannot be made, or when the
  /// name belongs to something that is no regular file.
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless it was committed.
  ~AtomicFile();

  /// Appends. Throws Error(internal) with the system's reason (disk full).
  void write(std::span<const std::byte> bytes) { sink_->write(bytes); }
  [[nodiscard]] FileSink& sink() { return *sink_; }

  /// Gives the file its name; the last call. Throws Error(internal).
  void commit();

 private:
  std::string path_;
  std::string temporary_path_;
  std::optional<FileSink> sink_;
  bool committed_ = false;
};

}  // namespace heddle::trace
