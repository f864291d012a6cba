#include "apps/generate.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include "algorithms/matrix/npy_writer.hpp"
#include "apps/file_uses.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle {
namespace {

constexpr std::int64_t panel_elements = std::int64_t{1} << 21;  // 16 MiB

/// A file under its temporary name.
class PendingFile {
 public:
  PendingFile(Run& run, const std::string& path, std::int64_t rows, std::int64_t columns,
              const std::string& tag)
      : path_(path),
        name_(std::make_unique<TemporaryName>(run.janitor(),
                                              NpyWriter::temporary_path_of(path, tag))),
        writer_(NpyWriter::create(path, rows, columns, tag)) {}

  void fill(const MatrixSource& source) {
    const std::int64_t rows = std::min(source.rows(), panel_elements);
    const std::int64_t columns =
        std::max<std::int64_t>(1, panel_elements / std::max<std::int64_t>(1, source.rows()));
    std::vector<double> memory(
        static_cast<std::size_t>(rows * std::min(columns, source.columns())));
    for (std::int64_t j = 0; j < source.columns(); j += columns) {
      for (std::int64_t i = 0; i < source.rows(); i += rows) {
        const TileView panel{memory.data(), std::min(rows, source.rows() - i),
                             std::min(columns, source.columns() - j),
                             std::max<std::int64_t>(1, std::min(rows, source.rows() - i))};
        source.read(GlobalRow{i}, GlobalColumn{j}, panel);
        writer_.write(GlobalRow{i}, GlobalColumn{j}, panel);
      }
    }
  }

  void finish(Results& results) {
    writer_.flush();
    writer_.keep();
    results.add(std::move(name_), path_);
  }

 private:
  std::string path_;
  std::unique_ptr<TemporaryName> name_;
  NpyWriter writer_;
};

void check_memory(const GeneratorOptions& options) {
  const std::uint64_t needed = generator_bytes(options) + panel_elements * sizeof(double);
  const std::uint64_t available = CpuTopology::detect().memory_available_bytes();
  if (needed <= available) return;
  throw Error(ErrorCode::usage,
              fmt::format("not enough memory: {} are needed to generate a {} matrix of {} columns, "
                          "{} are available; choose fewer, or another kind",
                          format_bytes(needed), generator_name(options.kind), options.n,
                          format_bytes(available)));
}

}  // namespace

void generate(const GenerateOptions& options, Run& run) {
  if (run.launcher().size > 1) {
    throw Error(ErrorCode::usage,
                fmt::format("generate writes with one process, but {} were started; leave out "
                            "mpiexec",
                            run.launcher().size));
  }
  if (options.sides.has_value() != options.sides_file.has_value()) {
    throw Error(ErrorCode::usage,
                "--rhs-columns N and --rhs-output FILE go together; give both or neither");
  }
  // Checks all outputs before computing anything of the matrix's size.
  FileUses files;
  files.writes("--output", options.matrix_file);
  if (options.sides_file) files.writes("--rhs-output", *options.sides_file);
  files.check_distinct();
  files.check_writable(run.janitor());
  check_generator(options.matrix);
  const std::int64_t rows = options.matrix.m.value_or(options.matrix.n);
  const std::string tag = fmt::format("{}", ::getpid());
  PendingFile matrix_file(run, options.matrix_file, rows, options.matrix.n, tag);
  std::optional<PendingFile> sides_file;
  if (options.sides) sides_file.emplace(run, *options.sides_file, rows, *options.sides, tag);
  check_memory(options.matrix);

  matrix_file.fill(*make_generator(options.matrix));
  if (sides_file) {
    GeneratorOptions random;
    random.kind = GeneratorKind::random;
    random.m = rows;
    random.n = *options.sides;
    random.seed = options.sides_seed;
    sides_file->fill(*make_generator(random));
  }
  matrix_file.finish(run.results());
  if (sides_file) sides_file->finish(run.results());
  run.results().commit();
}

}  // namespace heddle
