#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apps/janitor.hpp"

namespace heddle {

/// The files that a command leaves behind. Each is written under a temporary name beside its final
/// one; then commit() gives all of them their names, with nothing slow in between, or none: where
/// one rename fails, those before it are taken back. An interruption waits for the end of commit(),
/// and can say what is there.
///
/// One thread, but for the last three.
class Results {
 public:
  explicit Results(Janitor& janitor) : janitor_(janitor) {}
  [[nodiscard]] Janitor& janitor() { return janitor_; }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  /// Removes what was not committed.
  ~Results();

  /// Makes an empty file that commit() will call `path`, and returns the name that it has until
  /// then. It is written by whoever asks, under this name or by trace::AtomicFile.
  /// Throws Error(usage) when the file cannot be made.
  [[nodiscard]] std::string stage(const std::string& path);
  /// The same for a file that is there, complete and on the disk.
  void add(std::unique_ptr<TemporaryName> temporary, const std::string& path);
  /// The same for a text, which is on the disk when this returns. Throws Error.
  void add_text(const std::string& path, const std::string& text);

  /// Removes what has been staged or added.
  void discard() noexcept;

  /// Gives all files their names. When one cannot get its own, Error says so, and which ones are
  /// written nevertheless, if any; all others are removed. Throws Error(interrupted) after seal().
  void commit();

  /// Something has its final name.
  [[nodiscard]] bool are_written();
  /// What became of the results, as a clause: "no results were written".
  [[nodiscard]] std::string account();
  /// Waits until a commit() under way has ended, and prevents any other; then as account().
  [[nodiscard]] std::string seal();

 private:
  struct Entry {
    std::unique_ptr<TemporaryName> temporary;
    std::unique_ptr<TemporaryName> inner;  ///< of a writer that writes under yet another name
    std::unique_ptr<TemporaryName> old;    ///< another name of the file that will be replaced
    bool is_new = false;                   ///< no file will be replaced
    std::string path;
    std::string target;
  };

  void keep_old_ones();
  void rename_all();
  /// Whether the entry's name has again what it had before.
  [[nodiscard]] static bool take_back(const Entry& entry);
  [[nodiscard]] std::string clause() const;

  Janitor& janitor_;
  std::vector<Entry> pending_;
  std::mutex mutex_;  ///< of what follows, and of the final names
  std::vector<std::string> written_;
  bool are_partial_ = false;
  bool is_sealed_ = false;
};

}  // namespace heddle
