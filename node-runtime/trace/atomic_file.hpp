#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "node-runtime/trace/file_sink.hpp"

namespace heddle::trace {

/// A file that appears under its name complete or not at all: written as a temporary file beside it
/// ("x.json.<process id>.heddle-part") and renamed. An older file of that name stays until then and
/// passes on its mode, owner and links (base/replacement.hpp). Not thread-safe.
class AtomicFile {
 public:
  /// Throws Error(usage) with the file and the reason if it cannot be created
  /// (check_output_path()).
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless committed.
  ~AtomicFile();

  /// The temporary name in this process.
  [[nodiscard]] static std::string temporary_path_of(const std::string& path);

  /// Appends. Throws Error with the system's reason (code_of_write_failure()).
  void write(std::span<const std::byte> bytes) { sink_->write(bytes); }
  [[nodiscard]] FileSink& sink() { return *sink_; }

  /// Renames the file to its final name; the last call. Throws Error.
  void commit();

 private:
  std::string path_;
  std::string temporary_path_;
  std::optional<FileSink> sink_;
  bool committed_ = false;
};

}  // namespace heddle::trace
