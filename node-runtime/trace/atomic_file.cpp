#include "node-runtime/trace/atomic_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fmt/core.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"

namespace heddle::trace {

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_path_(fmt::format("{}.{}.heddle-part", path_, ::getpid())) {
  refuse_what_is_no_file(path_);
  // What a dead process of the same number left is overwritten.
  sink_.emplace(temporary_path_, path_);
}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(temporary_path_.c_str());
}

void AtomicFile::commit() {
  sink_->close();
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    throw Error(ErrorCode::internal, fmt::format("cannot write '{}': {}", path_,
                                                 std::generic_category().message(errno)));
  }
  committed_ = true;
}

}  // namespace heddle::trace
