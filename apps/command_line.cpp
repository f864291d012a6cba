#include "apps/command_line.hpp"

#include <csignal>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>

#include "apps/crash_handlers.hpp"
#include "apps/help_format.hpp"
#include "apps/launcher.hpp"
#include "apps/old_spellings.hpp"
#include "apps/report.hpp"
#include "apps/terminal.hpp"
#include "base/nearest.hpp"
#include "base/process_limits.hpp"
#include "base/standard_streams.hpp"

namespace heddle {
namespace {

/// The given command with its leading blank: " bench p2p".
std::string commands_of(const CLI::App& app) {
  std::string commands;
  for (auto given = app.get_subcommands(); !given.empty();) {
    commands += " " + given.front()->get_name();
    given = given.front()->get_subcommands();
  }
  return commands;
}

/// Error text for the first word that is no command or is missing; empty if all commands are known.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto commands = at->get_subcommands([](const CLI::App*) { return true; });
    const std::string_view word = words[i];
    if (commands.empty() || word.starts_with('-')) return {};
    std::vector<std::string_view> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* command : commands) {
      names.push_back(command->get_name());
      if (command->get_name() == word) found = command;
    }
    if (found == nullptr) {
      const std::string_view meant = nearest(word, names);
      return fmt::format("unknown command '{}'{}", word,
                         meant.empty() ? ";" : fmt::format("; did you mean '{}'?", meant));
    }
    at = found;
  }
  std::vector<std::string> missing;
  for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
    missing.push_back(command->get_name());
  }
  if (missing.empty()) return {};
  return fmt::format("after '{}' a command is missing: {};", at->get_name(),
                     fmt::join(missing, ", "));
}

/// Exit status if only help or a version is to be printed (by the first process); nothing if there
/// is work. Throws Error(usage) for an invalid command line.
std::optional<int> parse(CLI::App& app, const std::vector<std::string>& words, bool first) {
  if (words.size() <= 1) {
    if (first) print(app.help());
    return 0;
  }
  try {
    // CLI11 expects the words in reverse order.
    app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
  } catch (const CLI::ParseError& stop) {
    std::ostringstream out;
    std::ostringstream error;
    if (app.exit(stop, out, error) == 0) {
      if (first) print(out.str());
      return 0;
    }
    std::string wrong = unknown_command(app, words);
    if (wrong.empty()) wrong = fmt::format("{};", stop.what());
    throw Error(ErrorCode::usage,
                fmt::format("{} heddle{} --help tells more", wrong, commands_of(app)));
  }
  return std::nullopt;
}

int parse_and_work(int count, char** words,
                   const std::function<void(CLI::App&, Work&)>& add_commands) {
  const Launcher launcher = Launcher::detect();
  const CommandLine line =
      with_current_names(std::span<const char* const>(words, static_cast<std::size_t>(count)));
  if (launcher.rank == 0) {
    for (const std::string& note : line.notes) print_error(note);
  }
  Work work;
  std::optional<Error> trouble;
  CLI::App app("Dense factorizations on clusters whose nodes mix CPU cores and GPUs.", "heddle");
  app.formatter(std::make_shared<HelpFormat>());
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", fmt::format("heddle {}", heddle_version()),
                       "print heddle's version");
  app.require_subcommand(1);
  add_commands(app, work);
  app.footer("heddle COMMAND --help has a command's options.");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->group("Commands");
  }
  try {
    if (const auto status = parse(app, line.words, launcher.rank == 0)) return *status;
  } catch (const Error& error) {
    trouble = error;
  }
  // All processes learn of any one's error, and one prints it.
  Run run(launcher);
  try {
    run.mpi().throw_together(trouble ? trouble : run.trouble());
    return work(run);
  } catch (const Error& error) {
    if (run.interrupted()) run.leave(exit_status(ErrorCode::interrupted));
    if (launcher.rank == 0) print_error(error.what());
    return exit_status(error.code());
  }
}

int status_of_work(int count, char** words,
                   const std::function<void(CLI::App&, Work&)>& add_commands) {
  try {
    return parse_and_work(count, words, add_commands);
  } catch (const std::exception& exception) {
    const Error error = as_error(exception);
    print_error(error.what());
    return exit_status(error.code());
  }
}

}  // namespace

void add_overrides(CLI::App& command, std::vector<std::string>& overrides, const char* text) {
  command.add_option("--set", overrides, text)
      ->type_name("KEY.PATH=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_verbosity(CLI::App& command, Verbosity& verbosity) {
  auto* verbose = command.add_flag_callback(
      "-v,--verbose", [&verbosity] { verbosity = Verbosity::verbose; }, "print more");
  command
      .add_flag_callback(
          "-q,--quiet", [&verbosity] { verbosity = Verbosity::quiet; }, "print errors only")
      ->excludes(verbose);
}

int run_program(int count, char** words,
                const std::function<void(CLI::App&, Work&)>& add_commands) {
  open_standard_streams();
  std::signal(SIGPIPE,
              SIG_IGN);  // a closed pipe must not end the run before its results are written
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit is reported by the failing write
  remove_crash_handlers();
  return status_with_output(status_of_work(count, words, add_commands));
}

}  // namespace heddle
