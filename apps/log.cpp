#include "apps/log.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
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

}  // namespace

std::shared_ptr<spdlog::logger> make_log(const config::Logging& logging, Verbosity verbosity,
                                         std::int32_t rank, std::int32_t nodes) {
  const spdlog::level::level_enum wanted = level_of(logging.level);
  std::vector<spdlog::sink_ptr> sinks;
  if (rank == 0) {
    auto terminal = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    terminal->set_pattern("heddle: %l: %v");
    switch (verbosity) {
      case Verbosity::quiet:
        terminal->set_level(std::max(wanted, spdlog::level::err));
        break;
      case Verbosity::normal:
        // The plan and the table are what `info` has to say to a person.
        terminal->set_level(wanted == spdlog::level::info ? spdlog::level::warn : wanted);
        break;
      case Verbosity::verbose:
        terminal->set_level(std::min(wanted, spdlog::level::debug));
        break;
    }
    sinks.push_back(std::move(terminal));
  }
  if (logging.file) {
    try {
      auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(*logging.file);
      file->set_pattern(nodes == 1 ? "%Y-%m-%d %H:%M:%S.%e %l: %v"
                                   : fmt::format("%Y-%m-%d %H:%M:%S.%e [node {}] %l: %v", rank));
      file->set_level(wanted);
      sinks.push_back(std::move(file));
    } catch (const spdlog::spdlog_ex& error) {
      throw Error(ErrorCode::usage, fmt::format("logging.file: {}", error.what()));
    }
  }
  auto log = std::make_shared<spdlog::logger>("heddle", sinks.begin(), sinks.end());
  log->set_level(spdlog::level::trace);
  log->flush_on(spdlog::level::trace);
  return log;
}

}  // namespace heddle
