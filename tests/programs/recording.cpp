#include "tests/programs/recording.hpp"

#include <algorithm>
#include <bit>
#include <fmt/core.h>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/threads/fine_graphs.hpp"
#include "node-runtime/threads/program.hpp"

namespace heddle::simulation {

using protocol::Access;
using protocol::AccessMode;
using protocol::TileId;

namespace {

/// Keeps the calls of one node.
class Recorder final : public ProgramListener {
 public:
  Recorder(NodeId node, MatrixTable& table, const FineCut& cut, std::string& defect)
      : node_(node), table_(table), cut_(cut), defect_(defect) {}

  void insert(const Kernel& kernel, const TaskOptions& options,
              std::span<const Access> accesses) override {
    Call& call = add(Step::Kind::append, options.priority, accesses);
    call.kernel = kernel.name;
    call.parameters = std::bit_cast<std::array<std::uint64_t, 4>>(options.parameters);
    call.info_base = options.info_base;
    call.fine = fine_of(kernel, options, accesses);
    if (call.accesses.empty() || call.accesses.front().mode == AccessMode::read) {
      return complain(call, "has no main output");
    }
    if (call.accesses.front().home.node != node_) complain(call, "runs elsewhere");
    call.is_move =
        call.kernel == "copy" && (call.meant.front().first == call.meant.back().first ||
                                  std::ranges::all_of(call.accesses, [&](const Access& access) {
                                    return table_.is_temporary(access.tile.matrix);
                                  }));
    for (const Access& access : call.accesses) {
      if (access.mode == AccessMode::read) continue;
      if (access.home.node != node_) complain(call, "writes a tile that lives elsewhere");
      ++writes_[access.tile];
      if (!call.is_move) ++changes_[table_.meant(access.tile)];
    }
  }

  void announce(const Access& access, NodeId reader, std::int32_t priority) override {
    Call& call = add(Step::Kind::announce, priority, {&access, 1});
    call.reader = reader;
    if (access.home.node != node_) complain(call, "announces a tile that lives elsewhere");
    if (reader == node_) complain(call, "announces a tile to its own node");
  }

  void publish(const Access& access, std::span<const protocol::Reader> /*readers*/) override {
    const Call& call = add(Step::Kind::publish, 0, {&access, 1});
    if (access.home.node != node_) complain(call, "publishes a tile that lives elsewhere");
  }

  void release(const Access& access) override { add(Step::Kind::release, 0, {&access, 1}); }

  [[nodiscard]] std::vector<Call> take() { return std::move(calls_); }
  /// The versions that calls name or write, with the program's own names of their tiles.
  [[nodiscard]] const std::map<std::pair<TileId, Version>, TileId>& versions() const {
    return named_;
  }

 private:
  Call& add(Step::Kind kind, std::int32_t priority, std::span<const Access> accesses) {
    Call& call = calls_.emplace_back();
    call.kind = kind;
    call.priority = priority;
    for (const Access& given : accesses) {
      std::string wrong;
      const Access access = table_.renumbered(given, wrong);
      call.accesses.push_back(access);
      call.versions.push_back(access.version);
      const TileId meant = table_.meant(access.tile);
      call.meant.emplace_back(meant, access.version);
      if (access.home.node == node_) {
        call.versions.back() = Version{writes_[access.tile]};
        call.meant.back().second = Version{changes_[meant]};
      }
      if (!wrong.empty()) complain(call, wrong);
      named_.emplace(std::pair{access.tile, call.versions.back()}, given.tile);
      if (access.mode == AccessMode::read) continue;
      named_.emplace(std::pair{access.tile, call.versions.back() + 1}, given.tile);
    }
    for (std::size_t i = 0; i < call.accesses.size(); ++i) {
      const Version stated = call.accesses[i].version;
      if (call.versions[i] == protocol::count_here) {
        complain(call, "leaves out the version of a tile that lives elsewhere");
      } else if (stated != protocol::count_here && stated != call.versions[i]) {
        complain(call, fmt::format("states version {} of a tile that is at version {}",
                                   stated.value(), call.versions[i].value()));
      }
    }
    return call;
  }

  void complain(const Call& call, std::string_view what) {
    if (!defect_.empty()) return;
    defect_ = fmt::format("node {}, call {}: {} {}", node_.value(), calls_.size() - 1,
                          describe(call), what);
  }

  /// As the engine finds it.
  [[nodiscard]] const FineGraph* fine_of(const Kernel& kernel, const TaskOptions& options,
                                         std::span<const Access> accesses) const {
    static FineGraphs graphs;
    if (kernel.fine == nullptr || accesses.size() > FineTask::accesses_max) return nullptr;
    std::vector<OperandShape> shapes;
    for (const Access& access : accesses) shapes.push_back(cut_.shape_of(access.tile));
    return &graphs.of({&kernel, options.parameters, shapes}, cut_.small);
  }

  NodeId node_;
  MatrixTable& table_;
  const FineCut& cut_;
  std::string& defect_;
  std::vector<Call> calls_;
  std::map<std::pair<TileId, Version>, TileId> named_;
  std::map<TileId, std::int32_t> writes_;
  std::map<TileId, std::int32_t> changes_;  ///< writes that are no moves, by the tile that is meant
};

/// Never 0, which says that the work is the statement's alone.
std::uint64_t work_of(const Call& call) {
  constexpr std::uint64_t prime = 0x100000001B3ULL;
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : call.kernel) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  for (const std::uint64_t p : call.parameters) hash = (hash ^ p ^ p >> 29) * prime;
  return std::max<std::uint64_t>(1, hash);
}

Statement statement_of(const Call& call) {
  Statement statement;
  statement.accesses = call.accesses;
  for (std::size_t i = 0; i < call.accesses.size(); ++i) {
    statement.accesses[i].version = call.versions[i];
  }
  statement.priority = call.priority;
  statement.work = work_of(call);
  statement.fine = call.fine;
  statement.kernel = call.kernel;
  return statement;
}

/// Which versions there are, while the tasks of all nodes are put in an order.
class Written {
 public:
  explicit Written(const MatrixTable& table) : table_(table) {}

  [[nodiscard]] bool has_inputs_of(const Statement& task) const {
    return std::all_of(task.accesses.begin(), task.accesses.end(), [&](const Access& a) {
      if (a.mode == AccessMode::write) return true;
      if (a.version == Version{0}) return !table_.is_temporary(a.tile.matrix);
      return versions_.contains({a.tile, a.version});
    });
  }
  void add_outputs_of(const Statement& task) {
    for (const Access& a : task.accesses) {
      if (a.mode != AccessMode::read) versions_.emplace(a.tile, a.version + 1);
    }
  }

 private:
  const MatrixTable& table_;
  std::set<std::pair<TileId, Version>> versions_;
};

}  // namespace

void MatrixTable::add(const Matrix<double>& matrix, std::int32_t spare_count) {
  numbers_[matrix.id()] = protocol::MatrixId{static_cast<std::int32_t>(matrices_.size())};
  SimulatedMatrix& simulated = matrices_.emplace_back();
  simulated.spare_count = spare_count;
  const TileLayout& layout = matrix.layout();
  std::map<std::int64_t, std::int32_t> sizes;
  for (TileColumn c{0}; c.value() < layout.tile_columns(); ++c) {
    for (TileRow i{0}; i.value() < layout.tile_rows(); ++i) {
      simulated.homes.push_back(matrix.home(i, c));
      const std::int64_t size = layout.row_count(i) * layout.column_count(c);
      const auto found = sizes.emplace(size, static_cast<std::int32_t>(sizes.size())).first;
      simulated.classes.push_back(found->second);
    }
  }
}

void MatrixTable::add_room(const Matrix<double>& room, const Matrix<double>& matrix) {
  rooms_[numbers_.at(room.id())] = numbers_.at(matrix.id());
}

void MatrixTable::add_temporary(protocol::MatrixId matrix) {
  const protocol::MatrixId number{static_cast<std::int32_t>(matrices_.size())};
  numbers_[matrix] = number;
  if (const auto found = named_.find(matrix); found != named_.end()) rooms_[number] = found->second;
  matrices_.emplace_back().temporary = true;
}

Access MatrixTable::renumbered(Access access, std::string& defect) {
  constexpr Location unseen{NodeId{-1}, host_place};
  const auto found = numbers_.find(access.tile.matrix);
  HEDDLE_CHECK(found != numbers_.end(), "matrix {} is none of the job's",
               access.tile.matrix.value());
  access.tile.matrix = found->second;
  SimulatedMatrix& matrix = matrices_[static_cast<std::size_t>(found->second.value())];
  const auto index = static_cast<std::size_t>(access.tile.index);
  if (matrix.temporary && index >= matrix.homes.size()) matrix.homes.resize(index + 1, unseen);
  HEDDLE_CHECK(index < matrix.homes.size(), "tile {} of {}", index, matrix.homes.size());
  Location& home = matrix.homes[index];
  if (home == unseen) home = access.home;
  if (home != access.home) defect = "names a home that is not the tile's";
  return access;
}

RecordedJob record(const JobSpec& spec, std::int32_t nodes, MatrixTable& table,
                   const FineCut& cut) {
  for (const protocol::MatrixId m : spec.temporaries) table.add_temporary(m);
  RecordedJob job;
  for (std::int32_t p = 0; p < nodes; ++p) {
    Recorder recorder(NodeId{p}, table, cut, job.defect);
    TaskStream stream(recorder, NodeId{p}, {&spec, nodes});
    heddle::Program walk = spec.program(stream);
    while (walk.resume()) {
    }
    job.nodes.push_back(recorder.take());
    if (!spec.readers) continue;
    for (const auto& [version, tile] : recorder.versions()) {
      job.readers.emplace(version, spec.readers(tile, version.second));
    }
  }
  return job;
}

WalkedProgram walked_program(const RecordedJob& job, const MatrixTable& table,
                             std::string& defect) {
  WalkedProgram walked;
  walked.walks.resize(job.nodes.size());
  walked.readers = job.readers;
  std::vector<std::size_t> position(job.nodes.size());
  Written written(table);
  bool advances = true;
  while (advances) {
    advances = false;
    for (std::size_t p = 0; p < job.nodes.size(); ++p) {
      for (; position[p] < job.nodes[p].size(); ++position[p]) {
        const Call& call = job.nodes[p][position[p]];
        const std::size_t next = walked.program.statements.size();
        if (call.kind == Step::Kind::append) {
          Statement task = statement_of(call);
          if (!written.has_inputs_of(task)) break;
          written.add_outputs_of(task);
          walked.program.statements.push_back(std::move(task));
        }
        walked.walks[p].push_back({call.kind, next, call.accesses, call.reader, call.priority});
        advances = true;
      }
    }
  }
  for (std::size_t p = 0; p < job.nodes.size() && defect.empty(); ++p) {
    if (position[p] == job.nodes[p].size()) continue;
    defect = fmt::format("node {}, call {}: {} reads what nobody writes before it", p, position[p],
                         describe(job.nodes[p][position[p]]));
  }
  return walked;
}

std::string describe(const Call& call) {
  constexpr std::array<std::string_view, 4> kinds{"task", "announcement", "publication", "release"};
  std::string text = fmt::format("{} {}", kinds[static_cast<std::size_t>(call.kind)], call.kernel);
  for (std::size_t i = 0; i < call.accesses.size(); ++i) {
    const TileId tile = call.accesses[i].tile;
    text += fmt::format("{} tile {} of matrix {} version {}", i == 0 ? "" : ",", tile.index,
                        tile.matrix.value(), call.versions[i].value());
  }
  if (call.kind == Step::Kind::announce) {
    text += fmt::format(" to node {}", call.reader.value());
  }
  return text;
}

}  // namespace heddle::simulation
