#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apps/janitor.hpp"

namespace heddle {

/// A command's output files. Each is written under a temporary name beside its final one; commit()
/// then renames all or none: if one rename fails, earlier ones are undone. An interruption waits
/// for the end of commit() and can report what was written.
///
/// Not thread-safe except for the last three functions.
class Results {
 public:
  explicit Results(Janitor& janitor) : janitor_(janitor) {}
  [[nodiscard]] Janitor& janitor() { return janitor_; }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  /// Removes uncommitted files.
  ~Results();

  /// Creates an empty file that commit() will rename to `path`; returns its temporary name. The
  /// caller writes it under this name or through trace::AtomicFile. Throws Error(usage) on failure.
  [[nodiscard]] std::string stage(const std::string& path);
  /// The same for an existing file that is complete and synced.
  void add(std::unique_ptr<TemporaryName> temporary, const std::string& path);
  /// The same for a text; synced on return. Throws Error.
  void add_text(const std::string& path, const std::string& text);

  /// Removes all staged and added files.
  void discard() noexcept;

  /// Renames all files. If one fails, Error names it and any that were written nevertheless; all
  /// others are removed. Throws Error(interrupted) after seal().
  void commit();

  /// Whether any file has its final name.
  [[nodiscard]] bool are_written();
  /// State of the results as a clause: "no results were written".
  [[nodiscard]] std::string account();
  /// Waits for a commit() in progress and prevents later ones; then as account().
  [[nodiscard]] std::string seal();

 private:
  struct Entry {
    std::unique_ptr<TemporaryName> temporary;
    std::unique_ptr<TemporaryName> inner;  ///< for a writer with its own temporary name
    std::unique_ptr<TemporaryName> old;    ///< second name of the file to be replaced
    bool is_new = false;                   ///< no file is replaced
    std::string path;
    std::string target;
  };

  void keep_old_ones();
  void rename_all();
  /// Restores what the entry's name had before; returns success.
  [[nodiscard]] static bool take_back(const Entry& entry);
  [[nodiscard]] std::string clause() const;

  Janitor& janitor_;
  std::vector<Entry> pending_;
  std::mutex mutex_;  ///< protects the members below and the final names
  std::vector<std::string> written_;
  bool are_partial_ = false;
  bool is_sealed_ = false;
};

}  // namespace heddle
