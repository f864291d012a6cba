#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "apps/janitor.hpp"

namespace heddle {

/// All files that a command reads and all that it may write, so that none is written over another,
/// under whatever names: a file is what its device and number say, and one that is not there yet is
/// a name in a folder. A command fills it before it opens any of its outputs.
class FileUses {
 public:
  /// `name` is what the user knows the file by: "problem.matrix.file", "--machine", "the problem
  /// file".
  void reads(const std::string& name, const std::string& path);
  /// The folder of a recorded run, or a file of one of its nodes.
  void reads_run(const std::string& name, const std::string& path);
  /// The machine file: the one that was named, else the default one of this host.
  void reads_machine_file(const std::optional<std::string>& named);

  /// Throws Error(usage) for "-", which other programs take for standard output.
  void writes(const std::string& name, const std::string& path);
  /// The folder of a run, whose nodes' files are all written anew or removed.
  void writes_run(const std::string& name, const std::string& path);

  /// Throws Error(usage) when an output is an input, or two outputs are one file. Looks at names
  /// and folders only.
  void check_distinct() const;
  /// Throws Error(usage) when an output cannot be written. Tries it, and leaves nothing behind.
  void check_writable(Janitor& janitor) const;

 private:
  enum class Kind : std::uint8_t { file, run };
  enum class Deed : std::uint8_t { reads, writes };
  struct FileId {
    dev_t device = 0;
    ino_t number = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
  };
  /// Where a path leads: links are followed.
  struct Place {
    std::optional<FileId> file;    ///< nothing: it is not there
    std::optional<FileId> folder;  ///< that the file is in, or will be
    std::string name;              ///< in the folder
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
