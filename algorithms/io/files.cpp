#include "algorithms/io/files.hpp"

#include <chrono>
#include <fmt/core.h>
#include <optional>
#include <unistd.h>

#include "algorithms/generated/generated_tiles.hpp"
#include "algorithms/io/agreement.hpp"
#include "algorithms/io/distributed_read.hpp"
#include "algorithms/io/distributed_write.hpp"
#include "algorithms/matrix/generators.hpp"
#include "algorithms/matrix/matrix_file.hpp"
#include "algorithms/matrix/npy_writer.hpp"
#include "base/require.hpp"
#include "node-runtime/node.hpp"

namespace heddle {
namespace {

void read_source(MatrixSource& source, const Matrix<double>& into, Checked checked,
                 const std::string& name) {
  require(into.storage() != Storage::upper,
          "{}: matrices with Storage::upper cannot be read; Storage::full and lower can", name);
  prepare_reading(source, into);
  read_elements(source, into, checked, name);
}

std::unique_ptr<MatrixSource> open_together(Node& node, const std::string& path) {
  std::unique_ptr<MatrixSource> source;
  together(node, [&] { source = open_matrix_file(path, OneDimensional::as_column); });
  return source;
}

std::string name_of(const std::string& path) {
  return fmt::format("the matrix in '{}'", path);
}

}  // namespace

Matrix<double> read_matrix(Node& node, const std::string& path, Storage storage) {
  const std::unique_ptr<MatrixSource> source = open_together(node, path);
  std::optional<Matrix<double>> made;
  together(node, [&] { made = node.matrix<double>(source->rows(), source->columns(), storage); });
  read_source(*source, *made, Checked::yes, name_of(path));
  return *made;
}

void read_matrix(const std::string& path, const Matrix<double>& into) {
  const std::unique_ptr<MatrixSource> source = open_together(into.node(), path);
  read_source(*source, into, Checked::yes, name_of(path));
}

void write_matrix(const Matrix<double>& matrix, const std::string& path) {
  Node& node = matrix.node();
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string mine = node.rank() == 0 ? fmt::format("{}-{:x}", ::getpid(), now) : "";
  const std::string tag = gather_texts(node, mine).front();
  std::optional<NpyWriter> writer;
  together(node, [&] {
    if (node.rank() == 0) {
      writer.emplace(NpyWriter::create(path, matrix.rows(), matrix.columns(), tag));
    }
  });
  together(node, [&] {
    if (node.rank() == 0) return;
    writer.emplace(
        NpyWriter::open(NpyWriter::temporary_path_of(path, tag), matrix.rows(), matrix.columns()));
  });
  write_tiles(matrix, *writer);
  together(node, [&] {
    if (node.rank() == 0) writer->commit();
  });
}

void generate(const GeneratorOptions& options, const Matrix<double>& into) {
  GeneratorOptions sized = options;
  sized.n = into.columns();
  sized.m = into.rows();
  std::unique_ptr<MatrixSource> source;
  std::optional<GeneratedTiles> tiles;
  together(into.node(), [&] {
    source = make_generator(sized);
    if (source->generated() == nullptr || into.storage() == Storage::upper) return;
    tiles = GeneratedTiles::made_by(
        into.spec(), source->generated()->kind,
        [&](const MatrixSpec& spec) { return into.node().matrix<double>(spec); });
  });
  if (tiles) {
    tiles->fill(source->generated());
    return run_job(into.node(), tiles->job(into));
  }
  read_source(*source, into, Checked::before, "the generated matrix");
}

}  // namespace heddle
