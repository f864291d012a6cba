#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "apps/log.hpp"
#include "apps/run.hpp"

/// What the command lines of heddle's programs have in common.
namespace heddle {

/// What a command does once its line has been read. Returns the exit status, throws Error.
using Work = std::function<int(Run&)>;

/// `--set KEY.PATH=VALUE`, which may be given many times.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides, const char* text);
/// `-v` and `-q`.
void add_verbosity(CLI::App& command, Verbosity& verbosity);

/// Everything between `main()` and a command: reads the line, starts MPI where a launcher asks for
/// it, does the work, and prints what went wrong. `add_commands` gives `app` its commands; each
/// sets `work` when it is on the line. Returns the exit status.
[[nodiscard]] int run_program(int count, char** words,
                              const std::function<void(CLI::App& app, Work& work)>& add_commands);

}  // namespace heddle
