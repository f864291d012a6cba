#pragma once

#include <string>

#include "base/error.hpp"

/// Files are written under a temporary name beside the final one and then renamed, so that the
/// final name always has a complete file, old or new. Symbolic links, the file's mode and its owner
/// are kept.
namespace heddle {

/// The file that writing to `path` replaces: the end of a chain of symbolic links; it need not
/// exist. Throws Error(usage) for circular links.
[[nodiscard]] std::string target_of(const std::string& path);

/// Checks before a run that `path` can be written; changes nothing. Throws Error(usage) when its
/// folder is missing, is not a folder or not writable, when `path` is anything but a regular file,
/// or when the file is write-protected. An existing writable file is accepted: it will be replaced.
void check_output_path(const std::string& path);

/// Creates an empty file `temporary` that will be renamed to `target`, which is no link, with the
/// mode and owner of an existing `target`. Returns a descriptor open for writing, or -1 and errno
/// (EEXIST: the name is taken). Throws Error(usage) when this user may not give a file to that
/// owner.
[[nodiscard]] int create_replacement(const std::string& temporary, const std::string& target);

/// As create_replacement(), for a name that only this process uses: a file of that name is left
/// over from a dead process with the same id and removed first. Throws Error(usage) on failure.
[[nodiscard]] int renew_replacement(const std::string& temporary, const std::string& target);

/// fsync of the folder of `path`; does nothing if the folder cannot be opened.
void sync_folder_of(const std::string& path);

/// Error code of a failed write: usage for a full disk, a quota or a file size limit, else
/// internal.
[[nodiscard]] ErrorCode code_of_write_failure(int error);

}  // namespace heddle
