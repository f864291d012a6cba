#pragma once

#include <string>

#include "base/error.hpp"

/// Files that are written under a temporary name beside the final one and then renamed, so that the
/// final name always has a complete file, the new one or the old. In other respects what was there
/// stays as it was: links go on leading to the same place, and the file keeps its mode and owner.
namespace heddle {

/// Where a file that is written as `path` ends up: the end of a chain of links, which need not be
/// there. Throws Error(usage) when the links lead in a circle.
[[nodiscard]] std::string target_of(const std::string& path);

/// Throws Error(usage) when `path` cannot become a file, or cannot replace the one that is there:
/// its folder is missing, is no folder or does not allow new files; the name is taken by a folder
/// or another thing that is no regular file; the file is write-protected. Changes nothing; for the
/// check before the work begins. An existing file that may be written is fine, it will be replaced.
void check_output_path(const std::string& path);

/// Makes an empty file `temporary` that is going to be renamed to `target`, which is no link: with
/// the mode and the owner of the file that has this name, if there is one. The descriptor, open for
/// writing, or -1 with the reason in errno (EEXIST: the name is taken). Throws Error(usage) when
/// this user cannot give a file to that owner.
[[nodiscard]] int create_replacement(const std::string& temporary, const std::string& target);

/// For a file name that only this process uses: removes what a dead process of the same number has
/// left. Throws Error(usage) where create_replacement() has no file.
[[nodiscard]] int renew_replacement(const std::string& temporary, const std::string& target);

/// Puts on the disk which names the folder of `path` has. A folder that cannot be opened is left to
/// the system.
void sync_folder_of(const std::string& path);

/// What it means that a file cannot be written: a full disk, a quota or a limit of the file size
/// are the user's to change (usage), anything else should not happen (internal).
[[nodiscard]] ErrorCode code_of_write_failure(int error);

}  // namespace heddle
