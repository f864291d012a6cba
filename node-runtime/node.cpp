#include "node-runtime/node.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "kernels/cpu/blas.hpp"
#include "node-runtime/machine/quick_times.hpp"
#include "node-runtime/path_rates.hpp"
#include "node-runtime/threads/loops.hpp"
#include "node-runtime/topology/core_share.hpp"
#include "node-runtime/topology/surroundings.hpp"
#include "node-runtime/transport/message_explanations.hpp"
#include "node-runtime/transport/mpi_progress.hpp"
#include "node-runtime/tuning.hpp"
#include "node-runtime/wanted_devices.hpp"

namespace heddle {

// ---- jobs ------------------------------------------------------------------------------------

const JobResult& Job::wait() {
  engine_->wait(*record_);
  return record_->result;
}

void Job::reserve() {
  engine_->reserve(*record_);
}

void Job::start() {
  engine_->start(record_);
}

bool Job::done() const {
  const std::lock_guard lock(record_->mutex);
  return record_->is_done;
}

void Job::cancel() {
  engine_->cancel(*record_);
}

double Job::progress() const {
  if (done()) return 1;
  const auto finished =
      static_cast<double>(record_->tasks_finished.load(std::memory_order_relaxed));
  return record_->tasks_planned == 0 ? 0 : finished / static_cast<double>(record_->tasks_planned);
}

UserStream::~UserStream() {
  if (record_ != nullptr && !engine_->failed()) engine_->end_stream(*record_);
}

Job UserStream::end() {
  engine_->end_stream(*record_);
  return {*engine_, std::exchange(record_, nullptr)};
}

// ---- the parts of a node ---------------------------------------------------------------------

namespace {

WaitPolicy wait_policy(config::Wait wait) {
  switch (wait) {
    case config::Wait::adaptive:
      return WaitPolicy::adaptive;
    case config::Wait::spin:
      return WaitPolicy::spin;
    case config::Wait::park:
      return WaitPolicy::park;
  }
  return WaitPolicy::adaptive;
}

/// The measured choices for products, of all kinds of GPUs that were measured on this host.
std::vector<GpuProducts> measured_products(const Measurements& measured) {
  std::vector<GpuProducts> products;
  for (const DeviceMeasurement& device : measured.devices) {
    if (device.products.empty()) continue;
    products.push_back({device.name, device.library, device.products});
  }
  return products;
}

}  // namespace

struct Node::Parts {
  Parts(const Config& node_config, Communicator communicator_in)
      : config(node_config),
        communicator(std::move(communicator_in)),
        topology(CpuTopology::detect()),
        recorder({.node = NodeId{communicator.rank()},
                  .node_count = communicator.size(),
                  .enabled = config.trace.file.has_value()}) {}

  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    stop_threads();
    tiles.reset();  // its devices' threads ring the engine's bell
  }

  void agree_on_configuration();
  void share_cores_of_host();
  void decide();
  void decide_on_devices(const MachineProfile& profile);
  void agree_on_shape();
  void agree_on_tuning();
  void make_transport(std::span<Device* const> device_pointers);
  void start();
  void stop_threads();
  void launch(const std::string& name, std::vector<CpuCore> cores, int order,
              std::function<void(trace::ThreadTrace&)> loop);
  [[nodiscard]] std::vector<CpuCore> own_cores() const;

  Config config;
  Communicator communicator;
  CpuTopology topology;
  CoreShare core_share;
  GpuNeighbours gpu_neighbours;
  NodeFacts facts;
  DeviceSet devices;
  trace::Recorder recorder;
  MessageExplanations explanations;
  std::unique_ptr<TileTransport> tiles;  ///< before the store, which takes all memory of devices
  std::unique_ptr<TileStore> store;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<MpiProgress> progress;
  std::vector<std::thread> threads;
  NodeFaults faults;
  trace::ClockOffset clock;
};

void Node::Parts::agree_on_configuration() {
  const std::vector<std::uint64_t> all = communicator.all_gather(fingerprint(config));
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    throw Error(ErrorCode::usage,
                fmt::format("node {} was started with another configuration than node 0 ('{}' here "
                            "on node {}); give all nodes the same file and options",
                            r, config.name, communicator.rank()));
  }
}

/// Launchers may bind each process to cores of its own or leave all of them to all.
void Node::Parts::share_cores_of_host() {
  const CpuMask mine = mask_of(topology.cores());
  const std::vector<std::uint64_t> all = communicator.all_gather(mine);
  std::vector<CpuMask> masks;
  std::size_t self = 0;
  for (int r = 0; r < communicator.size(); ++r) {
    if (communicator.local_processes()[static_cast<std::size_t>(r)] == 0) continue;
    if (r == communicator.rank()) self = masks.size();
    CpuMask& mask = masks.emplace_back();
    std::copy_n(all.begin() + r * static_cast<std::ptrdiff_t>(mask.size()), mask.size(),
                mask.begin());
  }
  core_share = share_cores(masks, self);
}

/// What the layout of matrices follows from must be the same on all nodes.
void Node::Parts::agree_on_shape() {
  const std::array<std::uint64_t, 2> mine{static_cast<std::uint64_t>(facts.cpu_workers),
                                          static_cast<std::uint64_t>(facts.devices)};
  const std::vector<std::uint64_t> all = communicator.all_gather(mine);
  facts.cpu_workers_of_all = 0;
  for (std::size_t r = 0; r * 2 < all.size(); ++r) {
    facts.cpu_workers_of_all += static_cast<std::int32_t>(all[r * 2]);
    if (all[r * 2 + 1] == all[1]) continue;
    throw Error(ErrorCode::usage,
                fmt::format("node {} has {} devices, node 0 has {}, and all nodes must have as "
                            "many; set runtime.devices.per_node to what every node has",
                            r, all[r * 2 + 1], all[1]));
  }
}

/// Sizes follow from what was measured, and the hosts' machine files may differ: node 0's counts.
void Node::Parts::agree_on_tuning() {
  if (communicator.size() == 1) return;
  facts.tuning = tuning_from_text(communicator.broadcast(to_text(facts.tuning)));
}

/// Devices, what they are, and what is known about their kind.
void Node::Parts::decide_on_devices(const MachineProfile& profile) {
  DeviceOptions wanted = wanted_devices(config.runtime.devices);
  wanted.emulated.faults = faults.devices;
  wanted.emulated.kernel_seconds = faults.device_seconds;
  wanted.cuda.nodes = gpu_neighbours.nodes;
  wanted.cuda.node = gpu_neighbours.node;
  wanted.cuda.products = measured_products(profile.tuning.measured);
  devices = make_devices(wanted);
  facts.devices = static_cast<std::int32_t>(devices.devices.size());
  facts.device_backend = std::string(name_of(devices.backend));
  facts.device_reason = devices.why;
  if (facts.devices > 0) {
    facts.device_memory_bytes = devices.devices[0]->info().memory_bytes;
    if (facts.nodes > 1) {
      facts.device_memory_bytes -= TileTransport::device_bytes(facts.device_memory_bytes);
    }
    facts.device_name = devices.devices[0]->info().kind;
  }
  facts.distribution.devices = facts.devices;
  facts.tuning = profile.tuning;
  const DeviceMeasurement* measured =
      profile.tuning.measured.device(facts.device_backend, facts.device_name);
  facts.tuning.measured.devices.clear();
  if (measured != nullptr) facts.tuning.measured.devices.push_back(*measured);
  const std::int64_t streams = profile.tuning.fixed.streams.value_or(
      measured != nullptr ? measured->streams : EngineOptions{}.device_streams);
  facts.device_streams =
      static_cast<std::int32_t>(config.runtime.devices.streams.value_or(streams));
  if (facts.devices > 0 && config.layout.inner.has_value()) {
    facts.inverse_block = *config.layout.inner;
  } else if (devices.backend == DeviceBackend::cuda) {
    facts.inverse_block = gpu_inverse_block;
  }
}

void Node::Parts::decide() {
  facts.rank = communicator.rank();
  facts.nodes = communicator.size();
  facts.nodes_on_host = communicator.local_size();
  facts.cpu_model = topology.model();
  facts.memory_available_bytes =
      topology.memory_available_bytes() / static_cast<std::uint64_t>(facts.nodes_on_host);
  facts.distribution = grid_of(config, facts.nodes);

  std::optional<std::filesystem::path> machine_file;
  if (config.machine.has_value()) machine_file = *config.machine;
  const MachineProfile profile = prepare_machine(machine_file);
  const Blas& blas = load_blas(profile.blas);
  facts.blas = profile.explanation;
  facts.blas_kernels = fmt::format("{} (tile kernels: {})", blas.core_name, blas.tile_kernels());
  facts.machine_file = profile.file.string();
  facts.warnings = profile.warnings;

  decide_on_devices(profile);
  const int cores = topology.compute_thread_count();
  facts.cpu_workers = config.runtime.cpu_workers.has_value()
                          ? static_cast<std::int32_t>(*config.runtime.cpu_workers)
                          : std::max(1, cores / core_share.sharers);
  facts.window = static_cast<std::int32_t>(config.runtime.window.value_or(8192));
  // Threads that would compute or look for work without rest, on the cores that this node may use.
  const int hungry =
      core_share.sharers * (facts.cpu_workers + facts.devices + (facts.nodes > 1 ? 1 : 0));
  facts.oversubscribed = hungry > cores;
  facts.host_cores = cores * facts.nodes_on_host / core_share.sharers;
}

/// This node's share of the host's cores, so that nodes on one host do not sit on each other; empty
/// where there are fewer than workers.
std::vector<CpuCore> Node::Parts::own_cores() const {
  return core_share.part_of(topology.cores(), facts.cpu_workers);
}

/// A thread of the node: named, bound, and unable to end the process by an exception.
void Node::Parts::launch(const std::string& name, std::vector<CpuCore> cores, int order,
                         std::function<void(trace::ThreadTrace&)> loop) {
  trace::ThreadTrace& trace = recorder.thread(name, order);
  threads.emplace_back([this, name, cores = std::move(cores), &trace, loop = std::move(loop)] {
    try {
      name_current_thread(name);
      if (!cores.empty()) pin_current_thread(cores);
      loop(trace);
    } catch (const Error& error) {
      engine->fail(error);
    } catch (const std::exception& error) {
      engine->fail(Error(ErrorCode::internal, fmt::format("thread '{}': {}", name, error.what())));
    }
  });
}

/// What messages between nodes need, of which they may take some from the devices' memory.
void Node::Parts::make_transport(std::span<Device* const> device_pointers) {
  TileTransport::Options options;
  options.rates = path_rates(facts.tuning.measured);
  if (config.runtime.messages.path.has_value()) {
    options.path = p2p::path_named(name_of(*config.runtime.messages.path));
  }
  const MpsPresence mps = look_around().mps;
  options.processes_take_turns = !mps.is_connected && !mps.has_pipes;
  options.traces = recorder.enabled();
  options.meeting_seconds = config.runtime.watchdog_seconds;
  if (config.runtime.messages.explain) {
    options.report = [this](const p2p::MessageReport& report) { explanations.add(report); };
  }
  tiles = std::make_unique<TileTransport>(communicator, device_pointers, options);
}

void Node::Parts::start() {
  facts.moves_tasks = moves_tasks(config.runtime.placement, facts);
  clock.local_ns = trace::now_ns();
  clock.offset_ns = communicator.clock_offset_ns();
  std::vector<Device*> device_pointers;
  for (const auto& device : devices.devices) device_pointers.push_back(device.get());
  if (facts.nodes > 1) make_transport(device_pointers);
  store = std::make_unique<TileStore>(
      device_pointers, facts.memory_available_bytes,
      facts.moves_tasks ? TileStore::Backings::all : TileStore::Backings::as_needed);
  EngineOptions options;
  options.node = NodeId{facts.rank};
  options.node_count = facts.nodes;
  options.cpu_workers = facts.cpu_workers;
  options.devices = device_pointers;
  options.window = facts.window;
  options.wait = wait_policy(config.runtime.wait);
  options.oversubscribed = facts.oversubscribed;
  const std::vector<CpuCore> cores = own_cores();
  options.has_own_cores = !cores.empty();
  if (!cores.empty()) {
    options.worker_distances =
        cache_distances(std::span(cores).first(static_cast<std::size_t>(facts.cpu_workers)));
  }
  options.watchdog_seconds = config.runtime.watchdog_seconds;
  options.device_streams = facts.device_streams;
  if (config.runtime.priorities == config::Priorities::path) options.path_costs = task_costs(facts);
  if (facts.moves_tasks) {
    NodeFacts known = facts;
    std::optional<CpuMeasurement>& cpu = known.tuning.measured.cpu;
    if (!cpu) cpu = CpuMeasurement{1, quick_worker_times(), quick_worker_times()};
    options.lending = {
        faults.placement ? faults.placement : std::make_shared<const DynamicPlacement>(),
        task_costs(known)};
  }
  options.faults = faults.messages;
  // A worker holds a temporary that it reads and one that it writes, and leaves some behind that
  // wait for their readers.
  if (faults.extra_blocks_max.has_value()) {
    options.extra_blocks_max = *faults.extra_blocks_max;
  }
  engine = std::make_unique<Engine>(options, *store, recorder);

  launch("generation", cores, 0, [this](auto& trace) { generation_loop(*engine, trace); });
  for (std::int32_t w = 0; w < facts.cpu_workers; ++w) {
    std::vector<CpuCore> core;
    if (!cores.empty()) core.push_back(cores[static_cast<std::size_t>(w)]);
    launch(fmt::format("worker {}", w), core, 10 + w,
           [this, w](auto& trace) { cpu_worker_loop(*engine, w, trace); });
  }
  for (std::int32_t d = 0; d < facts.devices; ++d) {
    launch(fmt::format("device {}", d), cores, 1000 + d,
           [this, d](auto& trace) { device_manager_loop(*engine, d, trace); });
  }
  if (facts.devices > 0) {
    launch("copy", cores, 2000, [this](auto& trace) { copy_loop(*engine, trace); });
  }
  if (facts.nodes > 1) {
    trace::ThreadTrace& trace = recorder.thread("mpi", 3000);
    progress = std::make_unique<MpiProgress>(*engine, communicator, *tiles, trace);
    threads.emplace_back([this, cores] {
      try {
        name_current_thread("mpi");
        if (!cores.empty()) pin_current_thread(cores);
        progress->run();
      } catch (const Error& error) {
        engine->fail(error);
        progress->run_down();
      }
    });
  }
}

void Node::Parts::stop_threads() {
  if (threads.empty()) return;
  if (progress != nullptr && !engine->failed()) {
    try {
      progress->barrier();  // nobody stops answering while others still ask
    } catch (const Error&) {
      // The node has failed meanwhile: engine->failure() says why, and nobody is waited for.
    }
  }
  engine->stop();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  if (!engine->failed()) return;
  communicator.abandon();
  if (tiles != nullptr) tiles->abandon(*engine->failure());
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
  } catch (const Error& error) {
    trouble = error;
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

void Node::stop() {
  parts_->stop_threads();
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
  HEDDLE_CHECK(spec.dealing == Dealing::cyclic && !spec.temporary);
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
  HEDDLE_CHECK(spec.layout.is_valid(), "tile {} strip {} small {}", spec.layout.tile,
               spec.layout.strip, spec.layout.small);
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
            l.wide_of(c) / spec.distribution.grid_columns * l.wide_width() + l.offset_in_wide(c);
        table.wrapped.push_back(local ? wrapped + row + column * leading : nullptr);
      }
      table.is_local.push_back(local);
    }
  }
  state->id = parts_->engine->add_matrix(std::move(table));
  state->engine = parts_->engine.get();
  parts_->recorder.describe_matrix(
      {state->id.value(), fmt::format("m{}", state->id.value()), l.tile_rows(), l.tile_columns()});
  return handle;
}

Job Node::prepare(JobSpec spec) {
  return {*parts_->engine, parts_->engine->prepare(std::move(spec))};
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
    spec.matrices.push_back(matrix.id());
    spec.keep_alive.push_back(matrix.state());
    spec.fine = std::max(spec.fine, matrix.layout().fine);
  }
  return {*parts_->engine, parts_->engine->open_stream(std::move(spec), 64)};
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
