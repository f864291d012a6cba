#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/matrix/mapping_guard.hpp"
#include "base/error.hpp"

namespace heddle {

/// A regular, non-empty file mapped for reading; the pages are those of the page cache. Who reads
/// asks afterwards whether it was still the file (check_unchanged): where it was shortened, or
/// pages could not be read, there are zeros.
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

  /// Throws Error(usage) when the file is no longer as it was opened: shorter, longer, or written
  /// to; or when the system could not deliver all of it. Any thread.
  void check_unchanged() const;
  /// Part of check_unchanged() that costs nothing: whether all that was read so far was there.
  [[nodiscard]] bool is_broken() const { return guard_->is_broken(); }

  /// Runs `work`, which makes sense of the content. That the file has changed meanwhile comes
  /// before what `work` throws, for it may be why.
  template <class Work>
  void interpret(const Work& work) const {
    try {
      work();
    } catch (const Error&) {
      check_unchanged();
      throw;
    }
    check_unchanged();
  }

  /// The file will be read once from front to back.
  void expect_sequential_reading() const;

 private:
  std::string path_;
  void* address_ = nullptr;
  std::string_view content_;
  int file_ = -1;  ///< open for check_unchanged()
  std::int64_t changed_ns_ = 0;
  std::optional<MappingGuard> guard_;
};

}  // namespace heddle
