#include "apps/file_uses.hpp"

#include <cstddef>
#include <filesystem>
#include <fmt/core.h>
#include <sys/stat.h>
#include <system_error>

#include "apps/output_file.hpp"
#include "base/error.hpp"
#include "base/replacement.hpp"
#include "node-runtime/machine/machine_file.hpp"
#include "node-runtime/trace/run_folder.hpp"

namespace heddle {

void FileUses::reads(const std::string& name, const std::string& path) {
  add(name, path, Kind::file, Deed::reads);
}

void FileUses::reads_run(const std::string& name, const std::string& path) {
  std::error_code unknown;  // reported when the run is read
  if (!std::filesystem::is_directory(path, unknown)) return reads(name, path);
  add(name, path, Kind::run, Deed::reads);
  try {
    // Each may be a link to a file elsewhere.
    for (const auto& [node, file] : trace::node_files_in(path)) reads(name, file.string());
  } catch (const Error&) {
    // Reported when the run is read.
  }
}

void FileUses::reads_machine_file(const std::optional<std::string>& named) {
  if (named) return reads("machine", *named);
  if (const auto file = default_machine_file(describe_host())) {
    reads("the machine file", file->string());
  }
}

void FileUses::writes(const std::string& name, const std::string& path) {
  if (path == "-") {
    throw Error(ErrorCode::usage,
                fmt::format("{}: '-' does not mean standard output here; name a file (./- for a "
                            "file called -)",
                            name));
  }
  add(name, path, Kind::file, Deed::writes);
}

void FileUses::writes_run(const std::string& name, const std::string& path) {
  if (path == "-") {
    throw Error(ErrorCode::usage,
                fmt::format("{}: '-' does not mean standard output: a run's trace is a folder; "
                            "name one",
                            name));
  }
  add(name, path, Kind::run, Deed::writes);
}

void FileUses::check_distinct() const {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool this_writes = uses_[i].deed == Deed::writes;
      const Use& output = this_writes ? uses_[i] : uses_[j];
      const Use& other = this_writes ? uses_[j] : uses_[i];
      if (output.deed == Deed::reads || !meet(output, other)) continue;
      if (other.deed == Deed::writes) {
        throw Error(ErrorCode::usage,
                    fmt::format("{}: '{}' and {} '{}' both name the same file; choose another name",
                                output.name, output.path, other.name, other.path));
      }
      throw Error(ErrorCode::usage,
                  fmt::format("{}: '{}' would overwrite {} ('{}'), which is read; choose another "
                              "name",
                              output.name, output.path, other.name, other.path));
    }
  }
}

void FileUses::check_writable(Janitor& janitor) const {
  for (const Use& use : uses_) {
    if (use.deed == Deed::reads) continue;
    try {
      use.kind == Kind::run ? check_run_writable(use.path, janitor)
                            : heddle::check_writable(use.path, janitor);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", use.name, error.what()));
    }
  }
}

void FileUses::add(const std::string& name, const std::string& path, Kind kind, Deed deed) {
  uses_.push_back({name, path, kind, deed, locate(path)});
}

std::optional<FileUses::FileId> FileUses::identify(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

FileUses::Place FileUses::locate(const std::string& path) {
  std::filesystem::path target = path;
  while (target.has_relative_path() && !target.has_filename()) target = target.parent_path();
  try {
    target = target_of(target.string());
  } catch (const Error&) {
    // Circular links are not a file; opening it reports that.
  }
  const std::string folder = target.parent_path().string();
  return {identify(path), identify(folder.empty() ? "." : folder), target.filename().string()};
}

bool FileUses::is_in_run(const Use& file, const Use& run) {
  return run.kind == Kind::run && run.place.file && run.place.file == file.place.folder &&
         trace::is_node_file_name(file.place.name);
}

bool FileUses::meet(const Use& a, const Use& b) {
  const bool same_file = a.place.file && a.place.file == b.place.file;
  const bool same_name =
      a.place.folder && a.place.folder == b.place.folder && a.place.name == b.place.name;
  return same_file || same_name || is_in_run(a, b) || is_in_run(b, a);
}

}  // namespace heddle
