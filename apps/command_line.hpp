#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "apps/log.hpp"
#include "apps/run.hpp"

/// Shared by the command lines of heddle's programs.
namespace heddle {

/// The work of a parsed command. Returns the exit status, throws Error.
using Work = std::function<int(Run&)>;

/// `--set KEY.PATH=VALUE`, repeatable.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides, const char* text);
/// `-v` and `-q`.
void add_verbosity(CLI::App& command, Verbosity& verbosity);

/// The body of main(): parses the command line, starts MPI under a launcher, does the work and
/// prints errors. `add_commands` adds the commands to `app`; each sets `work` if it was given.
/// Returns the exit status.
[[nodiscard]] int run_program(int count, char** words,
                              const std::function<void(CLI::App& app, Work& work)>& add_commands);

}  // namespace heddle
