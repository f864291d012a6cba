#include "apps/simulation/simulated_program.hpp"

#include <bit>
#include <fmt/core.h>
#include <map>
#include <utility>

#include "algorithms/cholesky/cholesky.hpp"
#include "algorithms/cholesky/inverses.hpp"
#include "node-runtime/matrix_state.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle {

using protocol::Access;
using protocol::TileId;
using replay::TaskKindId;

namespace {

/// Numbers matrices that no node has.
class Handles {
 public:
  explicit Handles(std::vector<Matrix<double>>& made) : made_(made) {}

  Matrix<double> operator()(const MatrixSpec& spec) const {
    auto state = std::make_shared<MatrixState>();
    state->id = protocol::MatrixId{static_cast<std::int32_t>(made_.size())};
    check_tile_count(spec.layout);
    state->spec = spec;
    return made_.emplace_back(std::move(state));
  }

 private:
  std::vector<Matrix<double>>& made_;
};

}  // namespace

SimulatedFactorization simulated_cholesky(std::int64_t n, const TileLayout& layout,
                                          const Distribution& distribution,
                                          std::int64_t inverse_block, std::uint64_t device_memory) {
  SimulatedFactorization result;
  const Handles make(result.matrices);
  TileLayout cut = layout;
  cut.rows = cut.columns = n;
  const Matrix<double> a = make(MatrixSpec(cut, distribution, Storage::lower));
  std::optional<Matrix<double>> inverses;
  if (inverse_block > 0) inverses = make(inverses_spec(a, inverse_block));
  result.spec = cholesky(a, inverses, device_memory);
  result.flops = cholesky_flops(static_cast<double>(n));
  return result;
}

SimulatedFactorization simulated_qr(std::int64_t rows, std::int64_t columns, const QrLayout& layout,
                                    const Distribution& distribution) {
  SimulatedFactorization result;
  const Handles make(result.matrices);
  const QrSpecs specs = qr_specs(rows, columns, layout, distribution);
  result.spec = qr(qr_matrix_of(specs, layout, make));
  result.flops = qr_flops(static_cast<double>(rows), static_cast<double>(columns));
  return result;
}

/// A node's coroutine. What it inserts goes to the sink.
class SimulatedProgram::Walk final : public replay::NodeWalk, private ProgramListener {
 public:
  Walk(SimulatedProgram& program, NodeId node, replay::WalkSink& sink)
      : program_(program),
        sink_(sink),
        stream_(*this, node, {&program.what_.spec, 0}),
        coroutine_(program.what_.spec.program(stream_)) {}

  bool advance() override { return coroutine_.resume(); }

 private:
  void insert(const Kernel& kernel, const TaskOptions& options,
              std::span<const Access> accesses) override {
    sink_.append(program_.kind(kernel, options, accesses), options.priority, accesses);
  }
  void announce(const Access& access, NodeId reader, std::int32_t priority) override {
    sink_.announce(access, reader, priority);
  }
  void publish(const Access& access, std::span<const protocol::Reader> readers) override {
    sink_.publish(access, readers);
  }
  void release(const Access& access) override { sink_.release(access); }
  [[nodiscard]] bool has_room() const override { return sink_.has_room(); }

  SimulatedProgram& program_;
  replay::WalkSink& sink_;
  TaskStream stream_;
  Program coroutine_;
};

SimulatedProgram::SimulatedProgram(SimulatedFactorization what, KernelClock& clock, bool lends)
    : what_(std::move(what)), clock_(clock), lends_(lends) {
  for (const Matrix<double>& matrix : what_.matrices) {
    const TileLayout& l = matrix.layout();
    replay::SimulatedMatrixSpec spec;
    spec.name = fmt::format("m{}", specs_.size());
    spec.tile_rows = l.tile_rows();
    spec.tile_columns = l.tile_columns();
    spec.temporary = matrix.spec().temporary;
    spec.spare_count = matrix.spec().spare_count;
    // Tiles of one size are one class, as in the tile store.
    std::map<std::int64_t, std::int32_t> classes;
    std::vector<std::int32_t> of_tile;
    of_tile.reserve(static_cast<std::size_t>(l.tile_rows()) *
                    static_cast<std::size_t>(l.tile_columns()));
    for (TileColumn c{0}; c.value() < l.tile_columns(); ++c) {
      for (TileRow i{0}; i.value() < l.tile_rows(); ++i) {
        const auto next = static_cast<std::int32_t>(classes.size());
        const std::int64_t elements = l.row_count(i) * l.column_count(c);
        of_tile.push_back(classes.try_emplace(elements, next).first->second);
      }
    }
    spec.classes = std::make_shared<const std::vector<std::int32_t>>(std::move(of_tile));
    spec.class_count = std::max(1, static_cast<std::int32_t>(classes.size()));
    specs_.push_back(std::move(spec));
  }
}

std::unique_ptr<replay::NodeWalk> SimulatedProgram::walk(NodeId node, replay::WalkSink& sink) {
  return std::make_unique<Walk>(*this, node, sink);
}

OperandShape SimulatedProgram::shape(TileId tile) const {
  const auto number = static_cast<std::size_t>(tile.matrix.value());
  const std::int32_t rows = specs_[number].tile_rows;
  const TileLayout& layout = what_.matrices[number].layout();
  return {layout.row_count(TileRow{tile.index % rows}),
          layout.column_count(TileColumn{tile.index / rows})};
}

std::uint64_t SimulatedProgram::tile_bytes(TileId tile) const {
  const OperandShape whole = shape(tile);
  return static_cast<std::uint64_t>(whole.rows * whole.columns) * sizeof(double);
}

std::uint64_t SimulatedProgram::message_bytes(TileId tile, Version version) const {
  if (!what_.spec.part) return tile_bytes(tile);
  const OperandShape whole = shape(tile);
  const TilePart part = what_.spec.part(tile, version).of_tile(whole.rows);
  return static_cast<std::uint64_t>(part.element_count(whole.columns)) * sizeof(double);
}

namespace {

/// Seconds of the longest path through the graph of fine tasks.
double longest_way(const replay::FineKind& kind) {
  std::vector<double> before(kind.seconds.size(), 0);
  double longest = 0;
  for (std::int32_t n = 0; n < kind.graph.size(); ++n) {  // all that it waits for come first
    const auto at = static_cast<std::size_t>(n);
    const double end = before[at] + kind.seconds[at];
    longest = std::max(longest, end);
    for (const std::int32_t next : kind.graph.successors(n)) {
      double& since = before[static_cast<std::size_t>(next)];
      since = std::max(since, end);
    }
  }
  return longest;
}

}  // namespace

/// Null where workers run the kernel whole.
std::shared_ptr<const replay::FineKind> SimulatedProgram::fine_kind(const KernelCase& what) {
  if (what_.spec.fine == 0 || what.kernel->fine == nullptr) return nullptr;
  auto kind = std::make_shared<replay::FineKind>(
      replay::FineKind{FineGraph(fine_form(what, what_.spec.fine)), {}});
  if (kind->graph.size() <= 1) return nullptr;
  for (std::int32_t n = 0; n < kind->graph.size(); ++n) {
    const FineOperands task(kind->graph.task(n));
    kind->seconds.push_back(clock_.seconds(task.what(), Runner::worker));
  }
  return kind;
}

TaskKindId SimulatedProgram::kind(const Kernel& kernel, const TaskOptions& options,
                                  std::span<const Access> accesses) {
  const CaseKey key = CaseKey::of(kernel, options.parameters, accesses,
                                  [&](const Access& access) { return shape(access.tile); });
  const bool is_host = accesses.front().home.place == host_place;
  const Runner runner = is_host ? Runner::worker : Runner::device;
  auto& known = known_.at(static_cast<std::size_t>(runner));
  const auto found = std::as_const(known).find(key);
  if (found != known.end()) return found->second;
  const KernelCase what = key.what();
  replay::TaskKind made{std::string(kernel.name), key.operands[0].rows, key.operands[0].columns};
  made.flops = flops_of(what);
  if (!is_host) made.seconds_device = clock_.seconds(what, Runner::device);
  if (is_host || (lends_ && kernel.host != nullptr)) {
    made.fine = fine_kind(what);
    made.seconds_host = made.fine ? longest_way(*made.fine) : clock_.seconds(what, Runner::worker);
  }
  const auto next = TaskKindId{static_cast<std::int32_t>(kinds_.size())};
  kinds_.push_back(std::move(made));
  cases_.push_back(key);
  known.emplace(key, next);
  return next;
}

}  // namespace heddle
