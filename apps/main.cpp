#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "apps/command_line.hpp"
#include "apps/generate.hpp"
#include "apps/launcher.hpp"
#include "apps/old_spellings.hpp"
#include "apps/option_checks.hpp"
#include "apps/solve.hpp"
#include "apps/terminal.hpp"
#include "apps/tools.hpp"
#include "config/describe.hpp"

namespace heddle {
namespace {

void add_solve(CLI::App& app, SolveOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("solve", "factorize, solve, check, write");
  command->add_option("file", o.file, "the problem, YAML")->required()->type_name("FILE.yaml");
  add_overrides(*command, o.overrides,
                "change one key of the file; repeatable, the last one counts");
  command->add_option("--report", o.report, "write the report, JSON")
      ->type_name("FILE.json")
      ->check(option_checks::written());
  command
      ->add_option("--trace", o.trace,
                   "record the run: a folder for heddle analyze, or FILE.json for ui.perfetto.dev")
      ->type_name("RUN")
      ->check(option_checks::written());
  command->add_flag("--dry-run", o.dry_run, "print the plan and stop");
  add_verbosity(*command, o.verbosity);
  command->footer(
      "One node, or P nodes: mpiexec.mpich -n P heddle solve FILE.yaml\n\nExit status: 0 solved, "
      "1 internal failure, 2 bad usage, configuration or input,\n3 numerical failure, 4 a node or "
      "its communication failed, 130 interrupted.\n\n" +
      config::option_help());
  command->callback([&o, &work] { work = [&o](Run& run) { return solve(o, run); }; });
}

void add_generate(CLI::App& app, GenerateOptions& o, Work& work) {
  CLI::App* command = app.add_subcommand("generate", "write a generated matrix as a NumPy file");
  const std::string kinds = fmt::format("{}", fmt::join(generator_names(), ", "));
  const auto kind = [&o, kinds](const std::string& name) {
    const auto found = generator_kind(name);
    if (!found) {
      throw CLI::ValidationError("--kind",
                                 fmt::format("expected one of {}; found '{}'", kinds, name));
    }
    o.matrix.kind = *found;
  };
  command->add_option_function<std::string>("--kind", kind, kinds)->required()->type_name("KIND");
  const CLI::Validator extent = option_checks::whole(0, generator_extent_max);
  const CLI::Validator any_number = option_checks::number();
  command->add_option("-n", o.matrix.n, "columns")->required()->check(extent);
  command->add_option("-m", o.matrix.m, "rows, n unless given")->check(extent);
  command->add_option("--seed", o.matrix.seed, "seed of all kinds that are random")
      ->capture_default_str()
      ->check(option_checks::whole(0));
  command
      ->add_option("--condition", o.matrix.condition,
                   "spd: largest over smallest eigenvalue; conditioned: singular value; graded: "
                   "scale of a column")
      ->capture_default_str()
      ->check(any_number);
  command->add_option("--range", o.matrix.range, "kriging: correlation length")
      ->capture_default_str()
      ->check(any_number);
  command->add_option("--smoothness", o.matrix.smoothness, "kriging: order of the covariance")
      ->capture_default_str()
      ->check(any_number);
  command->add_option("--nugget", o.matrix.nugget, "kriging: added to the diagonal")
      ->capture_default_str()
      ->check(any_number);
  command->add_option("--rank", o.matrix.rank, "dependent: independent columns, n - 1 unless given")
      ->check(extent);
  command
      ->add_option("--distance", o.matrix.distance,
                   "dependent: largest deviation from the linear dependence")
      ->capture_default_str()
      ->check(any_number);
  command->add_option("-o,--output", o.matrix_file, "the file for the matrix")
      ->required()
      ->type_name("OUT.npy")
      ->check(option_checks::written_matrix());
  command->add_option("--rhs-columns", o.sides, "number of right-hand sides, none unless given")
      ->check(option_checks::whole(1, generator_extent_max));
  command->add_option("--rhs-output", o.sides_file, "the file for the right-hand sides")
      ->type_name("OUT.npy")
      ->check(option_checks::written_matrix());
  command->add_option("--rhs-seed", o.sides_seed, "seed of the right-hand sides")
      ->capture_default_str()
      ->check(option_checks::whole(0));
  command->callback([&o, &work] {
    work = [&o](Run& run) {
      generate(o, run);
      return 0;
    };
  });
}

void add_schema(CLI::App& app, Work& work) {
  CLI::App* command = app.add_subcommand("schema", "print the JSON Schema of configuration files");
  command->callback([&work] {
    work = [](Run& run) {
      if (run.launcher().rank == 0) print(config::json_schema().dump(2) + "\n");
      return 0;
    };
  });
}

/// Replaces this process by `heddle-tools`, which is installed and built beside this program.
/// Returns an exit status if that fails.
int become_tools(char** words) {
  std::error_code unreadable;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const std::string tools = self.parent_path() / "heddle-tools";
  if (!unreadable) ::execv(tools.c_str(), words);
  const int reason = unreadable ? unreadable.value() : errno;
  if (Launcher::detect().rank == 0) {
    print_error(reason == ENOENT
                    ? fmt::format("'heddle {}' needs the program {}, which is not built; build it "
                                  "with: cmake --build --preset release",
                                  words[1], tools)
                    : fmt::format("cannot start {}: {}", tools, std::strerror(reason)));
  }
  return exit_status(ErrorCode::usage);
}

}  // namespace
}  // namespace heddle

int main(int count, char** words) {
  using namespace heddle;
  const CommandLine line =
      with_current_names(std::span<const char* const>(words, static_cast<std::size_t>(count)));
  if (line.words.size() > 1 && !purpose_of(line.words[1]).empty()) return become_tools(words);
  SolveOptions solve_options;
  GenerateOptions generate_options;
  return run_program(count, words, [&](CLI::App& app, Work& work) {
    add_solve(app, solve_options, work);
    add_generate(app, generate_options, work);
    for (const ToolCommand& tool : tool_commands) {
      app.add_subcommand(std::string(tool.name), std::string(tool.purpose));
    }
    add_schema(app, work);
  });
}
