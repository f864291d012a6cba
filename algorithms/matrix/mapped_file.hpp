#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// A regular, non-empty file mapped for reading; the pages are those of the page cache. The file
/// must not be shortened while it is mapped.
class MappedFile {
 public:
  /// Throws Error(usage) that names `path` and the reason: missing, a folder, not a regular file,
  /// no permission, empty.
  explicit MappedFile(std::string path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string_view content() const { return content_; }

  /// The file will be read once from front to back.
  void expect_sequential_reading() const;

 private:
  std::string path_;
  void* address_ = nullptr;
  std::string_view content_;
};

}  // namespace heddle
