#include "base/replacement.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace heddle {
namespace {

constexpr int links_max = 40;  // MAXSYMLINKS of Linux
constexpr mode_t mode_bits = 07777;

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::usage, fmt::format("cannot write '{}': {}", path, reason));
}

std::string text_of(int error) {
  return std::generic_category().message(error);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// In a sticky folder such as /tmp another user's file may not be replaced.
bool is_protected(const struct stat& file, const struct stat& folder) {
  const uid_t user = ::geteuid();
  return (folder.st_mode & S_ISVTX) != 0 && user != 0 && file.st_uid != user &&
         folder.st_uid != user;
}

/// rename() checks only the folder's permissions, so the file's are checked here.
void check_file_is_writable(const std::string& path, const std::string& target) {
  const int file = ::open(target.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (file >= 0) {
    ::close(file);
    return;
  }
  const int error = errno;
  if (error == EACCES || error == EPERM) {
    refuse(path, fmt::format("the file is write-protected ({}); remove it, or choose another name",
                             text_of(error)));
  }
  refuse(path, fmt::format("opening it failed: {}", text_of(error)));
}

/// Gives `file` the owner and the mode of `before`; 0 or the errno of what failed.
int imitate(int file, const struct stat& before) {
  struct stat made {};
  if (::fstat(file, &made) != 0) return errno;
  const bool is_owned = made.st_uid == before.st_uid && made.st_gid == before.st_gid;
  if (!is_owned && ::fchown(file, before.st_uid, before.st_gid) != 0) return errno;
  // chown() clears the set-id bits, so the mode is set last.
  return ::fchmod(file, before.st_mode & mode_bits) == 0 ? 0 : errno;
}

}  // namespace

std::string target_of(const std::string& path) {
  std::filesystem::path at = path;
  for (int links = 0; links <= links_max; ++links) {
    std::error_code is_no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(at, is_no_link);
    if (is_no_link) return at.string();
    at = at.parent_path() / next;  // an absolute `next` replaces `at`
  }
  refuse(path, "its links lead in a circle");
}

void check_output_path(const std::string& path) {
  if (path.empty()) refuse(path, "the name is empty");
  struct stat file {};
  const bool exists = ::stat(path.c_str(), &file) == 0;
  if (path.back() == '/' || (exists && S_ISDIR(file.st_mode))) {
    refuse(path, "it is a folder; name a file");
  }
  if (exists && !S_ISREG(file.st_mode)) refuse(path, "it exists and is not a regular file");
  const std::string target = target_of(path);
  const std::string folder = folder_of(target);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    refuse(path, errno == ENOENT ? fmt::format("there is no folder '{}'", folder)
                                 : fmt::format("folder '{}': {}", folder, text_of(errno)));
  }
  if (!S_ISDIR(status.st_mode)) refuse(path, fmt::format("'{}' is not a folder", folder));
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    refuse(path, fmt::format("folder '{}' is not writable: {}", folder, text_of(errno)));
  }
  if (!exists) return;
  if (is_protected(file, status)) {
    refuse(path, fmt::format("the file belongs to another user and folder '{}' does not let it be "
                             "replaced",
                             folder));
  }
  check_file_is_writable(path, target);
}

int create_replacement(const std::string& temporary, const std::string& target) {
  struct stat before {};
  const bool replaces = ::stat(target.c_str(), &before) == 0;
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0 || !replaces) return file;
  const int error = imitate(file, before);
  if (error == 0) return file;
  ::close(file);
  ::unlink(temporary.c_str());
  refuse(target,
         fmt::format("the file belongs to user {} and group {}, and a new file in its place cannot "
                     "be given to them ({}); remove it, or choose another name",
                     before.st_uid, before.st_gid, text_of(error)));
}

int renew_replacement(const std::string& temporary, const std::string& target) {
  ::unlink(temporary.c_str());
  const int file = create_replacement(temporary, target);
  if (file < 0) {
    refuse(target, fmt::format("creating '{}' failed: {}", temporary, text_of(errno)));
  }
  return file;
}

void sync_folder_of(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

ErrorCode code_of_write_failure(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? ErrorCode::usage
                                                              : ErrorCode::internal;
}

}  // namespace heddle
