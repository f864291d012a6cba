#pragma once

#include <memory>
#include <optional>
#include <spdlog/logger.h>
#include <string>

#include "config/config.hpp"

namespace heddle {

/// Verbosity of the terminal.
enum class Verbosity : std::uint8_t { quiet, normal, verbose };

/// The log of a process: warnings to stderr on node 0 (verbose: all, quiet: errors), and messages
/// of all nodes from `logging.level` on to `logging.file`. Levels below `info` go to stderr too.
/// Throws Error(usage) if the file cannot be opened. If it becomes unwritable (disk full), node 0
/// warns once and the run continues.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_log(const config::Logging& logging,
                                                       Verbosity verbosity, std::int32_t rank,
                                                       std::int32_t nodes);

/// Why `logging.file` lacks messages of this process; empty if it is complete. Node 0 has logged
/// it.
[[nodiscard]] std::string log_trouble(const spdlog::logger& log);

}  // namespace heddle
