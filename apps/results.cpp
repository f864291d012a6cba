#include "apps/results.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/replacement.hpp"
#include "node-runtime/trace/atomic_file.hpp"

namespace heddle {
namespace {

[[noreturn]] void fail(ErrorCode code, const std::string& path, int error) {
  throw Error(code,
              fmt::format("cannot write '{}': {}", path, std::generic_category().message(error)));
}

/// Writes all of `text`, syncs and closes the file; 0 or the errno of the failure.
int write_all(int file, std::string_view text) {
  int error = 0;
  while (error == 0 && !text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && ::fsync(file) != 0) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

Results::~Results() {
  discard();
}

std::string Results::stage(const std::string& path) {
  check_output_path(path);
  Entry entry;
  entry.path = path;
  entry.target = target_of(path);
  std::string name = fmt::format("{}.{}.heddle-part", entry.target, ::getpid());
  entry.temporary = std::make_unique<TemporaryName>(janitor_, name);
  entry.inner =
      std::make_unique<TemporaryName>(janitor_, trace::AtomicFile::temporary_path_of(name));
  ::close(renew_replacement(name, entry.target));
  pending_.push_back(std::move(entry));
  return name;
}

void Results::add(std::unique_ptr<TemporaryName> temporary, const std::string& path) {
  Entry entry;
  entry.temporary = std::move(temporary);
  entry.path = path;
  entry.target = target_of(path);
  pending_.push_back(std::move(entry));
}

void Results::add_text(const std::string& path, const std::string& text) {
  const std::string name = stage(path);
  const int file = ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
  const int error = file < 0 ? errno : write_all(file, text);
  if (error != 0) fail(code_of_write_failure(error), path, error);
}

void Results::discard() noexcept {
  for (const Entry& entry : pending_) {
    ::unlink(entry.temporary->path().c_str());
    if (entry.old != nullptr) ::unlink(entry.old->path().c_str());
  }
  pending_.clear();
}

void Results::commit() {
  keep_old_ones();
  {
    const std::lock_guard lock(mutex_);
    if (is_sealed_) throw Error(ErrorCode::interrupted, "the process is ending");
    rename_all();
  }
  std::set<std::filesystem::path> folders;
  for (const Entry& entry : pending_) {
    const bool is_first = folders.insert(std::filesystem::path(entry.target).parent_path()).second;
    if (is_first) sync_folder_of(entry.target);
  }
  discard();  // removes the replaced files
}

/// Under a second name (hard link), where the file system supports it.
void Results::keep_old_ones() {
  for (Entry& entry : pending_) {
    auto old = std::make_unique<TemporaryName>(janitor_, entry.temporary->path() + ".old");
    ::unlink(old->path().c_str());
    if (::link(entry.target.c_str(), old->path().c_str()) == 0) {
      entry.old = std::move(old);
    } else {
      entry.is_new = errno == ENOENT;
    }
  }
}

void Results::rename_all() {
  std::size_t count = 0;
  for (const Entry& entry : pending_) {
    if (std::rename(entry.temporary->path().c_str(), entry.target.c_str()) != 0) break;
    ++count;
  }
  if (count == pending_.size()) {
    for (const Entry& entry : pending_) written_.push_back(entry.path);
    return;
  }
  const int error = errno;
  const std::string path = pending_[count].path;
  while (count > 0) {
    const Entry& entry = pending_[--count];
    if (take_back(entry)) continue;
    written_.push_back(entry.path);
    are_partial_ = true;
  }
  discard();
  throw Error(code_of_write_failure(error),
              fmt::format("cannot write '{}': giving it its final name failed: {}; {}", path,
                          std::generic_category().message(error), clause()));
}

bool Results::take_back(const Entry& entry) {
  if (entry.old != nullptr) {
    return std::rename(entry.old->path().c_str(), entry.target.c_str()) == 0;
  }
  return entry.is_new && ::unlink(entry.target.c_str()) == 0;
}

bool Results::are_written() {
  const std::lock_guard lock(mutex_);
  return !written_.empty();
}

std::string Results::account() {
  const std::lock_guard lock(mutex_);
  return clause();
}

std::string Results::seal() {
  const std::lock_guard lock(mutex_);
  is_sealed_ = true;
  return clause();
}

std::string Results::clause() const {
  if (written_.empty()) return "no results were written";
  return fmt::format(
      "{}: '{}'",
      are_partial_ ? "of the results only these were written" : "all results had been written",
      fmt::join(written_, "', '"));
}

}  // namespace heddle
