#pragma once

#include <memory>
#include <optional>
#include <spdlog/logger.h>
#include <string>

#include "config/config.hpp"

namespace heddle {

/// How much the user wants to see on the terminal.
enum class Verbosity : std::uint8_t { quiet, normal, verbose };

/// The messages of one process: to stderr, on node 0 alone, warnings (verbose: everything, quiet:
/// errors) and to `logging.file`, on all nodes, all from `logging.level` on. What is asked for
/// below `info` goes to stderr too. Throws Error(usage) when the file cannot be opened. When
/// it cannot take any more (a full disk), node 0 warns of that once, and the run goes on.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_log(const config::Logging& logging,
                                                       Verbosity verbosity, std::int32_t rank,
                                                       std::int32_t nodes);

/// Why `logging.file` lacks messages of this process; empty: it does not. Node 0 has said it.
[[nodiscard]] std::string log_trouble(const spdlog::logger& log);

}  // namespace heddle
