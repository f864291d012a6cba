#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <fmt/core.h>
#include <optional>
#include <string>
#include <utility>

#include "bench/node_run.hpp"
#include "bench/peers/normal.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/threads/program.hpp"

/// What the drivers for nodes with devices share.
namespace heddle {

/// What is left out is heddle's own choice.
struct DeviceOptions : RunOptions {
  std::string backend = "cuda";
  std::string devices;
  std::string memory;
  std::string workers;
  std::string tile;
  std::string strip;
  std::string small;
  std::string inner;
  std::string virtual_tiles;
  std::string tree;
  std::string streams;
  std::string grid;
  bool regenerate = false;
};

inline void add_device_options(CLI::App& app, DeviceOptions& options) {
  app.add_option("--backend", options.backend, "of the devices")
      ->check(CLI::IsMember({"cuda", "emulated"}));
  app.add_option("--devices", options.devices, "devices of a node");
  app.add_option("--memory", options.memory, "of each device that may be used, such as 8GiB");
  app.add_option("--workers", options.workers, "CPU workers of a node");
  app.add_option("--tile", options.tile, "rows and columns of a tile");
  app.add_option("--strip", options.strip, "columns of each tile that the CPUs keep");
  app.add_option("--small", options.small, "columns of a piece of the strip");
  app.add_option("--streams", options.streams, "streams of a device for kernels");
  app.add_option("--grid", options.grid, "[rows, columns] of nodes");
  app.add_flag("--regenerate", options.regenerate,
               "make the matrix anew before each run, where there is no memory to keep a copy");
  add_run_options(app, options);
}

/// The configuration that the options ask for.
inline Config configuration(const DeviceOptions& options) {
  const auto setting = [](const std::string& key, const std::string& value) {
    return value.empty() ? std::string() : fmt::format("{}: {}, ", key, value);
  };
  const std::string text =
      fmt::format("runtime: {{{}devices: {{{}{}{}{}}}}}\nlayout: {{{}{}{}{}{}{}{}}}\n{}",
                  setting("cpu_workers", options.workers), setting("backend", options.backend),
                  setting("per_node", options.devices), setting("memory", options.memory),
                  setting("streams", options.streams), setting("tile", options.tile),
                  setting("strip", options.strip), setting("small", options.small),
                  setting("inner", options.inner), setting("virtual", options.virtual_tiles),
                  setting("tree", options.tree), setting("grid", options.grid),
                  options.trace.empty() ? "" : fmt::format("trace: {{file: {}}}\n", options.trace));
  return Config::from_text(text, "the command line");
}

/// Sets a tile of the test matrix for Cholesky; its strictly upper part is zero.
inline Matrix<double>::Visitor spd_fill(const TileLayout& layout) {
  return [layout](TileRow i, TileColumn c, TileView tile) {
    const std::int64_t first_row = layout.row_begin(i);
    const std::int64_t first_column = layout.column_begin(c);
    for (std::int64_t b = 0; b < tile.columns; ++b) {
      const std::int64_t column = first_column + b;
      for (std::int64_t a = 0; a < tile.rows; ++a) {
        const std::int64_t row = first_row + a;
        tile(a, b) = row < column ? 0.0 : peer::normal_spd(row, column, layout.rows);
      }
    }
  };
}

inline Program copy_tiles(TaskStream& tasks, Matrix<double> to, Matrix<double> from) {
  const TileLayout layout = to.layout();
  for (TileColumn c{0}; c.value() < layout.tile_columns(); ++c) {
    for (TileRow i{0}; i.value() < layout.tile_rows(); ++i) {
      if (!to.stores(i, c) || to.home(i, c).node != tasks.node()) continue;
      co_await tasks.insert(kernel::copy, {write(to(i, c)), read(from(i, c))});
    }
  }
}

/// to := from, each tile where it lives; both alike in layout.
inline JobSpec copy_job(const Matrix<double>& to, const Matrix<double>& from) {
  JobSpec spec;
  spec.name = "copy";
  spec.matrices = {to.id(), from.id()};
  spec.keep_alive = {to.state(), from.state()};
  spec.program = [to, from](TaskStream& tasks) { return copy_tiles(tasks, to, from); };
  return spec;
}

/// A matrix that a factorization overwrites again and again, and how it gets its content back: from
/// a copy that lies beside it, or made anew where `options.regenerate` says so.
class Input {
 public:
  using Visitor = Matrix<double>::Visitor;

  Input(const Matrix<double>& matrix, bool regenerate, Visitor fill)
      : matrix_(matrix), fill_(std::move(fill)) {
    if (!regenerate) {
      copy_ = matrix.node().matrix<double>(matrix.spec());
      copy_->for_each_tile(fill_);
    }
  }

  void restore() {
    if (!copy_) {
      matrix_.for_each_tile(fill_);
      return;
    }
    const JobResult result = matrix_.node().submit(copy_job(matrix_, *copy_)).wait();
    if (result.status != JobResult::Status::done) {
      throw Error(ErrorCode::internal, "the copy of the matrix ended without a result\n");
    }
  }

  /// A matrix with the content, for as long as nothing else is done with this object.
  [[nodiscard]] Matrix<double> content() {
    if (!copy_) matrix_.for_each_tile(fill_);
    return copy_ ? *copy_ : matrix_;
  }

 private:
  Matrix<double> matrix_;
  std::optional<Matrix<double>> copy_;
  Visitor fill_;
};

}  // namespace heddle
