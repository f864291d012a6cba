#include "node-runtime/trace/file_sink.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/replacement.hpp"

namespace heddle::trace {

FileSink::FileSink(const std::string& path, std::string name) : name_(std::move(name)) {
  buffer_.reserve(buffer_bytes);
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) {
    throw Error(ErrorCode::usage, fmt::format("cannot write '{}': {}", name_,
                                              std::generic_category().message(errno)));
  }
}

FileSink::FileSink(int file, std::string name) : name_(std::move(name)), file_(file) {
  buffer_.reserve(buffer_bytes);
}

FileSink::~FileSink() {
  if (file_ >= 0) ::close(file_);
}

void FileSink::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() > buffer_bytes) {
    write_through(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void FileSink::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void FileSink::close() {
  flush();
  if (::close(std::exchange(file_, -1)) != 0) fail(errno);
}

void FileSink::write_through(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail(errno);
    if (written > 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void FileSink::fail(int error) const {
  throw Error(code_of_write_failure(error),
              fmt::format("cannot write '{}': {}", name_, std::generic_category().message(error)));
}

void refuse_what_is_no_file(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) return;
  throw Error(ErrorCode::usage, fmt::format("cannot write '{}': it is not a regular file", path));
}

}  // namespace heddle::trace
