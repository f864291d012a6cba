#include "node-runtime/node.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <fmt/core.h>
#include <functional>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/process_limits.hpp"
#include "base/require.hpp"
#include "base/units.hpp"
#include "node-runtime/messages.hpp"
#include "node-runtime/node_parts.hpp"
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

void UserStream::insert_all(const Kernel& kernel, const TaskOptions& options,
                            std::span<const protocol::Access> accesses) {
  JobRecord& job = record();
  const auto engine = job.link->use(called(job));
  static_cast<void>(job.stream->insert_all(kernel, options, accesses));
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

Node::Node(const Config& config) : Node(config, NodeFaults{}) {}

Node::Node(const Config& config, const NodeFaults& faults)
    : parts_(std::make_unique<Parts>(config, Communicator())) {
  parts_->faults = faults;
  parts_->decide();
  parts_->agree_on_shape();
  parts_->start();
}

Node::Node(const Config& config, MPI_Comm communicator)
    : Node(config, communicator, NodeFaults{}) {}

Node::Node(const Config& config, MPI_Comm communicator, const NodeFaults& faults)
    : parts_(std::make_unique<Parts>(config, Communicator(communicator))) {
  parts_->faults = faults;
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
  parts_->agree_on_tuning();
  parts_->start();
}

Node::~Node() = default;

std::vector<std::string> Node::explained_messages() const {
  return parts_->explanations.texts();
}

messages::Endpoint Node::messages() {
  return messages::Endpoint(parts_->user_messages());
}

void Node::stop() {
  parts_->stop_together();
}

bool Node::failed() const {
  return parts_->engine->failed();
}

trace::ClockOffset Node::clock_offset() const {
  return parts_->clock;
}

int Node::rank() const {
  return parts_->facts.rank;
}
int Node::size() const {
  return parts_->facts.nodes;
}
const NodeFacts& Node::facts() const {
  return parts_->facts;
}
Engine& Node::engine() {
  return *parts_->engine;
}
const Config& Node::config() const {
  return parts_->config;
}
void Node::bind_beside_workers() const noexcept {
  try {
    if (!parts_->cores_of_others.empty()) pin_current_thread(parts_->cores_of_others);
  } catch (const std::exception&) {
    // It computes nothing that depends on where it runs.
  }
}

trace::Recorder& Node::recorder() {
  return parts_->recorder;
}
TileStore& Node::store() {
  return *parts_->store;
}

TileLayout Node::default_layout(std::int64_t rows, std::int64_t columns) const {
  const config::Layout& wanted = parts_->config.layout;
  return choose_layout(rows, columns, wanted, parts_->facts);
}

template <>
Matrix<double> Node::matrix<double>(const MatrixSpec& spec) {
  return make(spec, nullptr, 0);
}

Matrix<double> Node::wrap(double* local, std::int64_t leading, MatrixSpec spec) {
  if (!spec.has_layout) {
    spec.layout = default_layout(spec.rows, spec.columns);
    spec.distribution = parts_->facts.distribution;
    spec.has_layout = true;
  }
  spec.distribution.devices = 0;
  require(local != nullptr, "Node::wrap: no memory was given");
  require(spec.dealing == Dealing::cyclic && !spec.temporary,
          "Node::wrap: a wrapped matrix is dealt out cyclically and is not temporary");
  return make(spec, local, leading);
}

Matrix<double> Node::make(const MatrixSpec& wanted, double* wrapped, std::int64_t leading) {
  auto state = std::make_shared<MatrixState>();
  MatrixSpec& spec = state->spec;
  spec = wanted;
  if (!spec.has_layout) {
    spec.layout = default_layout(spec.rows, spec.columns);
    spec.distribution = parts_->facts.distribution;
    spec.has_layout = true;
  }
  spec.layout.rows = spec.rows;
  spec.layout.columns = spec.columns;
  require(spec.layout.is_valid(),
          "a matrix of {} x {} elements cannot be cut into tiles of {} with strips of {} and small "
          "tiles of {}",
          spec.rows, spec.columns, spec.layout.tile, spec.layout.strip, spec.layout.small);
  check_tile_count(spec.layout);
  state->node = this;
  Matrix<double> handle(state);
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
      if (wrapped != nullptr) {
        const std::int64_t row = i.value() / spec.distribution.grid_rows * l.tile;
        const std::int64_t column =
            l.wide_of(c).value() / spec.distribution.grid_columns * l.wide_width() +
            l.offset_in_wide(c);
        table.wrapped.push_back(local ? wrapped + row + column * leading : nullptr);
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

trace::ClockOffset Node::compare_clocks() {
  constexpr int rounds = 20;
  constexpr double high_part = 4294967296.0;  // in two doubles that are exact
  const bool is_first = rank() == 0;
  const std::vector<std::string>& hosts = parts_->communicator.hosts();
  struct Stay {
    std::int64_t came_ns = 0;
    std::int64_t left_ns = 0;
  };
  Stay mine;
  trace::ClockBounds bounds;
  // Each round tells when node 0 came to the one before, and left it.
  for (int round = 0; round <= rounds; ++round) {
    const Stay before = mine;
    std::array<double, 4> first{};
    const auto split = [&](std::size_t at, std::int64_t ns) {
      first.at(at) = std::floor(static_cast<double>(ns) / high_part);
      first.at(at + 1) =
          static_cast<double>(ns - static_cast<std::int64_t>(first.at(at) * high_part));
    };
    if (is_first) {
      split(0, before.came_ns);
      split(2, before.left_ns);
    }
    mine.came_ns = trace::now_ns();
    all_reduce(first, Reduction::sum);
    mine.left_ns = trace::now_ns();
    const auto joined = [&](std::size_t at) {
      return static_cast<std::int64_t>(first.at(at) * high_part) +
             static_cast<std::int64_t>(first.at(at + 1));
    };
    if (round > 0) bounds.add(joined(0), joined(2), before.came_ns, before.left_ns);
  }
  // Nodes of one host have the same clock.
  const bool is_same = hosts.empty() || hosts.at(static_cast<std::size_t>(rank())) == hosts.front();
  return {mine.left_ns, is_same ? 0 : bounds.offset_ns()};
}

void Node::all_reduce(std::span<double> values, Reduction reduction) {
  if (parts_->progress != nullptr) parts_->progress->all_reduce(values, reduction);
}

void Node::on_quiet(std::function<void(const std::string&)> tell) {
  engine().jobs().on_quiet(std::move(tell));
}

void Node::barrier() {
  if (parts_->progress != nullptr) parts_->progress->barrier();
}

std::vector<ThreadReport> Node::threads() const {
  std::vector<ThreadReport> reports;
  for (const trace::ThreadTrace* thread : parts_->recorder.threads()) {
    if (thread->name() == trace::divided_row) continue;
    const trace::ThreadTotals t = thread->totals();
    reports.push_back({thread->name(), static_cast<double>(t.busy_ns) * 1e-9,
                       static_cast<double>(t.waiting_ns) * 1e-9,
                       static_cast<std::int64_t>(t.tasks)});
  }
  return reports;
}

}  // namespace heddle
