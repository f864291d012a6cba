#include "apps/log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <fmt/core.h>
#include <mutex>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace heddle {
namespace {

spdlog::level::level_enum level_of(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::off:
      return spdlog::level::off;
    case config::LogLevel::error:
      return spdlog::level::err;
    case config::LogLevel::warning:
      return spdlog::level::warn;
    case config::LogLevel::info:
      return spdlog::level::info;
    case config::LogLevel::debug:
      return spdlog::level::debug;
    case config::LogLevel::trace:
      return spdlog::level::trace;
  }
  return spdlog::level::info;
}

using Terminal = std::shared_ptr<spdlog::sinks::stderr_sink_mt>;

/// Appends whole lines to a file that all nodes may share. Stops at the first line that cannot be
/// written; the terminal, if any, shows a warning.
class LogFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  LogFile(const std::string& path, Terminal terminal)
      : path_(path),
        terminal_(std::move(terminal)),
        file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    if (file_ >= 0) return;
    throw Error(ErrorCode::usage, fmt::format("logging.file: cannot write '{}': {}", path,
                                              std::generic_category().message(errno)));
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile() override { ::close(file_); }

  [[nodiscard]] std::string trouble() {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!trouble_.empty()) return;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view rest(line.data(), line.size());
    while (!rest.empty()) {
      const ssize_t written = ::write(file_, rest.data(), rest.size());
      if (written < 0 && errno != EINTR) return fail(errno);
      if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void flush_() override {}

  void fail(int error) {
    trouble_ =
        fmt::format("logging.file: '{}' could not be written: {}; what comes later is not in it",
                    path_, std::generic_category().message(error));
    if (terminal_ == nullptr || !terminal_->should_log(spdlog::level::warn)) return;
    terminal_->log(spdlog::details::log_msg("heddle", spdlog::level::warn, trouble_));
    terminal_->flush();
  }

  std::string path_;
  Terminal terminal_;
  int file_;
  std::string trouble_;  ///< empty: all was written
};

}  // namespace

std::shared_ptr<spdlog::logger> make_log(const config::Logging& logging, Verbosity verbosity,
                                         std::int32_t rank, std::int32_t nodes) {
  const spdlog::level::level_enum wanted = level_of(logging.level);
  std::vector<spdlog::sink_ptr> sinks;
  Terminal terminal;
  if (rank == 0) {
    terminal = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    terminal->set_pattern("heddle: %l: %v");
    switch (verbosity) {
      case Verbosity::quiet:
        terminal->set_level(std::max(wanted, spdlog::level::err));
        break;
      case Verbosity::normal:
        // The plan and the final table already show what `info` says.
        terminal->set_level(wanted == spdlog::level::info ? spdlog::level::warn : wanted);
        break;
      case Verbosity::verbose:
        terminal->set_level(std::min(wanted, spdlog::level::debug));
        break;
    }
    sinks.push_back(terminal);
  }
  if (logging.file) {
    auto file = std::make_shared<LogFile>(*logging.file, terminal);
    file->set_pattern(nodes == 1 ? "%Y-%m-%d %H:%M:%S.%e %l: %v"
                                 : fmt::format("%Y-%m-%d %H:%M:%S.%e [node {}] %l: %v", rank));
    file->set_level(wanted);
    sinks.push_back(std::move(file));
  }
  auto log = std::make_shared<spdlog::logger>("heddle", sinks.begin(), sinks.end());
  log->set_level(spdlog::level::trace);
  log->flush_on(spdlog::level::trace);
  return log;
}

std::string log_trouble(const spdlog::logger& log) {
  for (const spdlog::sink_ptr& sink : log.sinks()) {
    if (const auto file = std::dynamic_pointer_cast<LogFile>(sink)) return file->trouble();
  }
  return {};
}

}  // namespace heddle
