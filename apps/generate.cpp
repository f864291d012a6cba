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

namespace heddle {
namespace {

constexpr std::int64_t panel_elements = std::int64_t{1} << 21;  // 16 MiB

/// A file under its temporary name.
class PendingFile {
 public:
  PendingFile(Run& run, const std::string& path, const MatrixSource& source, const std::string& tag)
      : path_(path),
        name_(std::make_unique<TemporaryName>(run.janitor(),
                                              NpyWriter::temporary_path_of(path, tag))),
        writer_(NpyWriter::create(path, source.rows(), source.columns(), tag)) {}

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
                "--rhs COLUMNS and --right-hand-sides FILE go together; give both or neither");
  }
  FileUses files;
  files.writes("--matrix", options.matrix_file);
  if (options.sides_file) files.writes("--right-hand-sides", *options.sides_file);
  files.check_distinct();
  files.check_writable();
  const std::unique_ptr<MatrixSource> matrix = make_generator(options.matrix);
  std::unique_ptr<MatrixSource> sides;
  if (options.sides) {
    GeneratorOptions random;
    random.kind = GeneratorKind::random;
    random.m = matrix->rows();
    random.n = *options.sides;
    random.seed = options.sides_seed;
    sides = make_generator(random);
  }
  const std::string tag = fmt::format("{}", ::getpid());
  PendingFile matrix_file(run, options.matrix_file, *matrix, tag);
  std::optional<PendingFile> sides_file;
  if (sides) sides_file.emplace(run, *options.sides_file, *sides, tag);
  matrix_file.fill(*matrix);
  if (sides) sides_file->fill(*sides);
  matrix_file.finish(run.results());
  if (sides) sides_file->finish(run.results());
  run.results().commit();
}

}  // namespace heddle
