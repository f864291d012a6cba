#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "node-runtime/trace/file_sink.hpp"

namespace heddle::trace {

/// A file that appears under its name at once and complete, or not at all: written under a
/// temporary name beside it ("x.json.<process id>.heddle-part") and renamed. An older file of the
/// name stays until then, and leaves its mode, owner and links (base/replacement.hpp). One thread.
class AtomicFile {
 public:
  /// Throws Error(usage) that names the file and the reason when it cannot be made
  /// (check_output_path()).
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless it was committed.
  ~AtomicFile();

  /// The name that this process uses meanwhile.
  [[nodiscard]] static std::string temporary_path_of(const std::string& path);

  /// Appends. Throws Error with the system's reason (code_of_write_failure(): a full disk).
  void write(std::span<const std::byte> bytes) { sink_->write(bytes); }
  [[nodiscard]] FileSink& sink() { return *sink_; }

  /// Gives the file its name; the last call. Throws Error.
  void commit();

 private:
  std::string path_;
  std::string temporary_path_;
  std::optional<FileSink> sink_;
  bool committed_ = false;
};

}  // namespace heddle::trace
