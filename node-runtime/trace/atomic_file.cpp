#include "node-runtime/trace/atomic_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fmt/core.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/replacement.hpp"

namespace heddle::trace {

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_path_(temporary_path_of(path_)) {
  check_output_path(path_);
  sink_.emplace(renew_replacement(temporary_path_, target_of(path_)), path_);
}

std::string AtomicFile::temporary_path_of(const std::string& path) {
  return fmt::format("{}.{}.heddle-part", target_of(path), ::getpid());
}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(temporary_path_.c_str());
}

void AtomicFile::commit() {
  sink_->close();
  if (std::rename(temporary_path_.c_str(), target_of(path_).c_str()) != 0) {
    throw Error(ErrorCode::internal, fmt::format("cannot write '{}': {}", path_,
                                                 std::generic_category().message(errno)));
  }
  committed_ = true;
}

}  // namespace heddle::trace
