#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "apps/janitor.hpp"

namespace heddle {

/// Files that a command reads and may write: ensures that no input or output is overwritten under
/// another name. A file is identified by device and inode, a missing one by folder and name. Fill
/// it before opening any output.
class FileUses {
 public:
  /// `name` is the user's term for the file: "problem.matrix.file", "--machine", "the problem
  /// file".
  void reads(const std::string& name, const std::string& path);
  /// A recorded run's folder, or the file of one node.
  void reads_run(const std::string& name, const std::string& path);
  /// The machine file: `named`, else this host's default.
  void reads_machine_file(const std::optional<std::string>& named);

  /// Throws Error(usage) for "-", which usually means standard output.
  void writes(const std::string& name, const std::string& path);
  /// A run's folder; all node files in it are rewritten or removed.
  void writes_run(const std::string& name, const std::string& path);

  /// Throws Error(usage) if an output is also an input, or two outputs are one file. Only inspects
  /// names and folders.
  void check_distinct() const;
  /// Throws Error(usage) if an output cannot be written. Creates and removes probe files.
  void check_writable(Janitor& janitor) const;

 private:
  enum class Kind : std::uint8_t { file, run };
  enum class Deed : std::uint8_t { reads, writes };
  struct FileId {
    dev_t device = 0;
    ino_t number = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
  };
  /// Target of a path after following links.
  struct Place {
    std::optional<FileId> file;    ///< empty: missing
    std::optional<FileId> folder;  ///< folder of the file
    std::string name;              ///< name in the folder
  };
  struct Use {
    std::string name;
    std::string path;
    Kind kind = Kind::file;
    Deed deed = Deed::reads;
    Place place;
  };

  void add(const std::string& name, const std::string& path, Kind kind, Deed deed);
  [[nodiscard]] static std::optional<FileId> identify(const std::string& path);
  [[nodiscard]] static Place locate(const std::string& path);
  [[nodiscard]] static bool is_in_run(const Use& file, const Use& run);
  [[nodiscard]] static bool meet(const Use& a, const Use& b);

  std::vector<Use> uses_;
};

}  // namespace heddle
