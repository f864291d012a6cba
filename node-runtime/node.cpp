#include "node-runtime/node.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <fmt/core.h>
#include <functional>
#include <mpi.h>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/process_limits.hpp"
#include "base/require.hpp"
#include "node-runtime/local_array.hpp"
#include "node-runtime/matrix_state.hpp"
#include "node-runtime/messages.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_parts.hpp"
#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/tuning.hpp"
#include "node-runtime/wanted_devices.hpp"

namespace heddle {

// ---- jobs ------------------------------------------------------------------------------------

namespace {

/// Names a job in messages.
std::string called(const JobRecord& job) {
  return fmt::format("job '{}'", job.name);
}

}  // namespace

JobRecord& Job::record() const {
  require(record_ != nullptr, "a job was used that has been moved from");
  return *record_;
}

const JobResult& Job::wait() {
  JobRecord& job = record();
  require(job.step.load(std::memory_order_acquire) == JobRecord::Step::started,
          "Job::wait: {} was never started", called(job));
  require(!job.is_awaited.exchange(true, std::memory_order_relaxed),
          "Job::wait: {} was waited for before; keep the result", called(job));
  if (!done()) job.link->use(called(job))->jobs().wait(job);
  return job.result;
}

void Job::reserve() {
  JobRecord& job = record();
  job.link->use(called(job))->jobs().reserve(job);
}

void Job::start() {
  JobRecord& job = record();
  job.link->use(called(job))->jobs().start(record_);
}

bool Job::done() const {
  JobRecord& job = record();
  const std::lock_guard lock(job.mutex);
  return job.is_done;
}

void Job::cancel() {
  JobRecord& job = record();
  if (done()) return;
  job.link->use(called(job))->cancel(job);
}

double Job::progress() const {
  if (done()) return 1;
  const auto finished =
      static_cast<double>(record_->tasks_finished.load(std::memory_order_relaxed));
  return record_->tasks_planned == 0 ? 0 : finished / static_cast<double>(record_->tasks_planned);
}

UserStream::~UserStream() {
  if (record_ == nullptr) return;
  const auto engine = record_->link->try_use();
  if (engine && !engine->failed()) engine->end_stream(*record_);
}

JobRecord& UserStream::record() const {
  require(record_ != nullptr, "a task stream was used that has ended");
  return *record_;
}

void UserStream::insert(const Kernel& kernel, const AccessList& accesses,
                        const TaskOptions& options) {
  JobRecord& job = record();
  const auto engine = job.link->use(called(job));
  static_cast<void>(job.stream->insert(kernel, accesses, options));
}

void UserStream::release(const protocol::Access& access) {
  JobRecord& job = record();
  const auto engine = job.link->use(called(job));
  job.stream->release(access);
}

Job UserStream::end() {
  JobRecord& job = record();
  job.link->use(called(job))->end_stream(job);
  return Job(std::exchange(record_, nullptr));
}

// ---- the node --------------------------------------------------------------------------------

namespace {

/// The MPI_Comm of a caller who knows its type from MPI's own header.
MPI_Comm mpi_communicator(const void* value, std::size_t bytes) {
  require(
      bytes == sizeof(MPI_Comm),
      "Node: the communicator has {} bytes; an MPI_Comm of the MPI library that heddle was built "
      "with has {}",
      bytes, sizeof(MPI_Comm));
  MPI_Comm communicator = MPI_COMM_NULL;
  std::memcpy(&communicator, value, sizeof communicator);
  return communicator;
}

}  // namespace

Node::Node(const Config& config) : Node(config, NodeFaults{}) {}

Node::Node(const Config& config, const NodeFaults& faults)
    : parts_(std::make_unique<Parts>(config, Communicator())) {
  parts_->faults = faults;
  parts_->decide();
  parts_->agree_on_shape();
  parts_->start();
}

Node::Node(const Config& config, Handle communicator, const NodeFaults* faults)
    : parts_(std::make_unique<Parts>(
          config, Communicator(mpi_communicator(communicator.value, communicator.bytes)))) {
  if (faults != nullptr) parts_->faults = *faults;
  parts_->agree_on_configuration();
  parts_->share_cores_of_host();
  parts_->gpu_neighbours = find_gpu_neighbours(config.runtime.devices, parts_->communicator);
  std::optional<Error> trouble;
  try {
    parts_->decide();
  } catch (const std::exception& error) {
    trouble = as_error(error);
  }
  parts_->communicator.throw_together(trouble);
  parts_->agree_on_shape();
  share_emulated_devices(parts_->devices, config.runtime.devices, parts_->communicator);
  parts_->agree_on_places();
  parts_->agree_on_tuning();
  parts_->start();
}

Node::~Node() = default;

messages::Endpoint Node::messages() {
  return messages::Endpoint(parts_->user_messages());
}

void Node::stop() {
  parts_->stop_together();
}

bool Node::failed() const {
  return parts_->engine->failed();
}

int Node::rank() const {
  return parts_->facts.rank;
}
int Node::size() const {
  return parts_->facts.nodes;
}
int Node::cpu_workers() const {
  return parts_->facts.cpu_workers;
}
int Node::devices() const {
  return parts_->facts.devices;
}
Device& Node::device(int number) const {
  require(number >= 0 && number < devices(), "Node::device({}): the node has {}, counted from 0",
          number, devices());
  return *parts_->devices.devices[static_cast<std::size_t>(number)];
}
const NodeFacts& Node::facts() const {
  return parts_->facts;
}
const Config& Node::config() const {
  return parts_->config;
}

MatrixSpec Node::with_layout(const MatrixSpec& spec) const {
  const TileLayout& wanted = spec.layout;
  require(wanted == TileLayout{.rows = wanted.rows, .columns = wanted.columns, .tile = 0} &&
              spec.distribution == Distribution{},
          "a MatrixSpec of {} x {} elements says how the matrix is cut or dealt out, but not the "
          "size of "
          "its tiles; set layout.tile, or leave all to the node",
          wanted.rows, wanted.columns);
  MatrixSpec complete = spec;
  complete.layout = default_layout(wanted.rows, wanted.columns);
  complete.distribution = default_distribution(wanted.rows, wanted.columns);
  return complete;
}

TileLayout Node::default_layout(std::int64_t rows, std::int64_t columns) const {
  const config::Layout& wanted = parts_->config.layout;
  return choose_layout(rows, columns, wanted, parts_->facts);
}

Distribution Node::default_distribution(std::int64_t rows, std::int64_t columns) const {
  Distribution distribution = parts_->facts.distribution;
  distribution.devices = devices_for(rows, columns, parts_->facts);
  return distribution;
}

namespace {

/// `make()`, whose matrix has the same id on all nodes, that of the next call too where it throws
/// on this one alone.
template <class Make>
Matrix<double> numbered(Engine& engine, const Make& make) {
  const protocol::MatrixId id = engine.next_matrix();
  try {
    return make();
  } catch (...) {
    if (engine.next_matrix() == id) engine.skip_matrix();
    throw;
  }
}

}  // namespace

Matrix<double> Node::wrap(double* local, std::int64_t leading, const MatrixSpec& spec) {
  return numbered(*parts_->engine, [&] {
    MatrixSpec on_host = spec;
    if (spec.layout.tile == 0) on_host = with_layout(spec);
    on_host.distribution.devices = 0;
    require(local != nullptr, "Node::wrap: no memory was given");
    require(spec.dealing == Dealing::cyclic && !spec.temporary,
            "Node::wrap: a wrapped matrix is dealt out cyclically and is not temporary");
    return build(on_host, local, leading);
  });
}

Matrix<double> Node::make(const MatrixSpec& wanted) {
  return numbered(*parts_->engine, [&] { return build(wanted, nullptr, 0); });
}

Matrix<double> Node::build(const MatrixSpec& wanted, double* wrapped, std::int64_t leading) {
  auto state = std::make_shared<MatrixState>();
  MatrixSpec& spec = state->spec;
  spec = wanted.layout.tile == 0 ? with_layout(wanted) : wanted;
  require(spec.layout.is_valid(),
          "a matrix of {} x {} elements cannot be cut into tiles of {} with strips of {} and small "
          "tiles of {}",
          spec.layout.rows, spec.layout.columns, spec.layout.tile, spec.layout.strip,
          spec.layout.small);
  check_tile_count(spec.layout);
  state->node = this;
  Matrix<double> handle(state);
  std::optional<LocalArray> array;
  if (wrapped != nullptr) {
    array.emplace(spec, NodeId{rank()});
    require(leading >= array->rows(),
            "Node::wrap: a distance of {} between columns; this node has {} rows of the matrix",
            leading, array->rows());
  }
  TileTable table;
  table.temporary = spec.temporary;
  table.wrapped_leading = leading;
  table.spare_count = spec.spare_count;
  const TileLayout& l = spec.layout;
  const auto count =
      static_cast<std::size_t>(l.tile_rows()) * static_cast<std::size_t>(l.tile_columns());
  table.shapes.reserve(count);
  table.home_places.reserve(count);
  table.is_local.reserve(count);
  for (TileColumn c{0}; c.value() < l.tile_columns(); ++c) {
    for (TileRow i{0}; i.value() < l.tile_rows(); ++i) {
      const Location home = handle.home(i, c);
      const bool local = home.node.value() == rank() && handle.stores(i, c);
      table.shapes.push_back({static_cast<std::int32_t>(l.row_count(i)),
                              static_cast<std::int32_t>(l.column_count(c))});
      table.home_places.push_back(home.place);
      if (array) {
        table.wrapped.push_back(local ? wrapped + array->offset(i, c, leading) : nullptr);
      }
      table.is_local.push_back(local);
    }
  }
  state->id = parts_->engine->add_matrix(std::move(table));
  state->link = parts_->engine->link();
  parts_->recorder.describe_matrix(
      {state->id.value(), fmt::format("m{}", state->id.value()), l.tile_rows(), l.tile_columns()});
  return handle;
}

Job Node::prepare(JobSpec spec) {
  return Job(parts_->engine->jobs().prepare(std::move(spec)));
}

Job Node::submit(JobSpec spec) {
  Job job = prepare(std::move(spec));
  job.start();
  return job;
}

UserStream Node::stream(std::string name, const std::vector<Matrix<double>>& matrices) {
  JobSpec spec;
  spec.name = std::move(name);
  for (const auto& matrix : matrices) {
    require(&matrix.node() == this, "Node::stream: '{}' names a matrix of another node", spec.name);
    spec.matrices.push_back(matrix.id());
    spec.keep_alive.push_back(matrix.state());
    spec.fine = std::max(spec.fine, matrix.layout().fine);
  }
  return UserStream(parts_->engine->jobs().open_stream(std::move(spec), 64));
}

void Node::all_reduce(std::span<double> values, Reduction reduction) {
  parts_->all_reduce(values, reduction);
}

void Node::on_quiet(std::function<void(const std::string&)> tell) {
  parts_->engine->jobs().on_quiet(std::move(tell));
}

void Node::barrier() {
  parts_->barrier();
}

}  // namespace heddle
