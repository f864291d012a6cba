#include "node-runtime/node_parts.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>

#include "base/kept_memory.hpp"
#include "base/process_limits.hpp"
#include "config/effective.hpp"
#include "config/words.hpp"
#include "kernels/case_key.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/cpu/blas_memory.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/collectives/operation_trace.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "node-runtime/machine/quick_times.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_places.hpp"
#include "node-runtime/path_rates.hpp"
#include "node-runtime/reader_way.hpp"
#include "node-runtime/scheduling/placement_policy.hpp"
#include "node-runtime/threads/loops.hpp"
#include "node-runtime/topology/surroundings.hpp"
#include "node-runtime/transport/endpoint_sizes.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
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

/// The host of each node, by a number.
std::vector<std::int32_t> hosts_of(std::span<const std::string> names, std::int32_t nodes) {
  const collectives::Places places = collectives::places_on_hosts(names, nodes);
  std::vector<std::int32_t> hosts;
  for (collectives::Rank r{0}; r.value() < nodes; ++r) hosts.push_back(places[r].host);
  return hosts;
}

void check_priorities(config::Priorities wanted) {
  using config::Priorities;
  if (wanted == Priorities::program || wanted == Priorities::path) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("runtime.priorities: {} is only for heddle simulate and heddle replay, to "
                  "compare with; a run takes program or path",
                  name_of(wanted)));
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

/// Times of kernels; those that only pretend to run take what they pretend.
TaskCosts pretended(TaskCosts costs, const NodeFaults& faults) {
  if (!faults.device_seconds && !faults.worker_seconds) return costs;
  costs.kernel = [known = costs.kernel, device = faults.device_seconds,
                  worker = faults.worker_seconds](const KernelCase& what, bool on_device) {
    const auto& seconds_of = on_device ? device : worker;
    if (!seconds_of) return known(what, on_device);
    std::array<TileView, CaseKey::operands_max> tiles;
    const std::size_t count = what.operands.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto [rows, columns] = what.operands[i];
      tiles.at(i) = {nullptr, rows, columns, rows};
    }
    const double seconds =
        seconds_of(*what.kernel, {std::span(tiles).first(count), what.parameters});
    return seconds > 0 ? seconds : known(what, on_device);
  };
  return costs;
}

}  // namespace

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
  wanted.emulated.kernel_is_run = faults.device_runs;
  wanted.cuda.nodes = gpu_neighbours.nodes;
  wanted.cuda.node = gpu_neighbours.node;
  wanted.cuda.products = measured_products(profile.tuning.measured);
  devices = make_devices(wanted);
  facts.devices = static_cast<std::int32_t>(devices.devices.size());
  facts.are_devices_wanted = config.runtime.devices.per_node.has_value();
  facts.device_backend = std::string(name_of(devices.backend));
  facts.device_reason = devices.why;
  if (facts.devices > 0) {
    facts.device_memory_bytes = devices.devices[0]->info().memory_bytes;
    set_message_memory_aside();
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

/// What messages take of each device's memory is no tile's.
void Node::Parts::set_message_memory_aside() {
  const std::uint64_t all = facts.device_memory_bytes;
  const std::size_t programs = program_device_bytes();
  if (facts.nodes == 1 && programs == 0) return;
  const std::uint64_t own = EndpointSizes::for_device(all, facts.nodes > 1).device_bytes();
  if (programs >= all - own) {
    throw Error(ErrorCode::usage,
                fmt::format("runtime.messages.device_memory: {} bytes of each device are set aside "
                            "for the program's messages, and it has {}",
                            programs, all));
  }
  facts.device_memory_bytes = all - own - programs;
}

std::size_t Node::Parts::program_device_bytes() const {
  return config.runtime.messages.device_memory.value_or(0);
}

/// A limit of this process's own memory counts like memory that is there.
void Node::Parts::count_memory_limit() {
  // The thread of messages: an arena, a stack, the memory that it shares with the host's nodes.
  constexpr std::uint64_t message_bytes = std::uint64_t{64 + 8 + 16} << 20U;
  const auto left = memory_beside_blas(facts.cpu_workers, facts.nodes > 1 ? message_bytes : 0);
  if (left) facts.memory_available_bytes = std::min(facts.memory_available_bytes, *left);
}

void Node::Parts::decide() {
  check_priorities(config.runtime.priorities);
  facts.rank = communicator.rank();
  facts.nodes = communicator.size();
  facts.nodes_on_host = communicator.local_size();
  facts.cpu_model = topology.model();
  const int cores = topology.compute_thread_count();
  facts.cpu_workers = config.runtime.cpu_workers.has_value()
                          ? static_cast<std::int32_t>(*config.runtime.cpu_workers)
                          : std::max(1, cores / core_share.sharers);
  facts.memory_available_bytes =
      faults.host_memory_bytes.value_or(topology.memory_available_bytes()) /
      static_cast<std::uint64_t>(facts.nodes_on_host);
  count_memory_limit();
  facts.distribution = grid_of(config, facts.nodes);

  std::optional<std::filesystem::path> machine_file;
  if (config.machine.has_value()) machine_file = *config.machine;
  const MachineProfile profile = prepare_machine(machine_file);
  const Blas& blas = load_blas(profile.blas);
  facts.blas = profile.explanation;
  facts.blas_kernels = fmt::format("{} (tile kernels: {})", blas.core_name, blas.tile_kernels);
  facts.machine_file = profile.file.string();
  facts.warnings = profile.warnings;

  decide_on_devices(profile);
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
  threads.push_back(start_thread(name, [this, name, cores = std::move(cores), &trace,
                                        loop = std::move(loop)] {
    try {
      name_current_thread(name);
      if (!cores.empty()) pin_current_thread(cores);
      loop(trace);
    } catch (const Error& error) {
      engine->fail(error);
    } catch (const std::exception& error) {
      engine->fail(Error(ErrorCode::internal, fmt::format("thread '{}': {}", name, error.what())));
    }
  }));
}

/// What messages between nodes need, of which they may take some from the devices' memory.
void Node::Parts::make_transport(std::span<Device* const> device_pointers) {
  TileTransport::Options options;
  options.rates = path_rates(facts.tuning.measured);
  if (config.runtime.messages.path.has_value()) {
    options.path = p2p::path_named(name_of(*config.runtime.messages.path));
  }
  options.processes_take_turns = facts.takes_turns;
  options.traces = recorder.enabled();
  options.meeting_seconds = config.runtime.watchdog_seconds;
  options.program_device_bytes = program_device_bytes();
  if (config.runtime.messages.explain) {
    options.report = [this](const p2p::MessageReport& report) { explanations.add(report); };
  }
  tiles = std::make_unique<TileTransport>(communicator, device_pointers, options);
}

/// Where nodes are, and whether work of several on one device runs in turns: choices that all nodes
/// make alike follow from both.
void Node::Parts::agree_on_places() {
  const MpsPresence mps = look_around().mps;
  const bool takes_turns = devices.backend == DeviceBackend::emulated
                               ? config.runtime.devices.turn_us > 0
                               : !mps.is_connected && !mps.has_pipes;
  const std::vector<std::uint64_t> all = communicator.all_gather(takes_turns ? 1 : 0);
  facts.takes_turns = std::ranges::any_of(all, [](std::uint64_t one) { return one != 0; });
  places = exchange_places(place_of_node(devices, topology.cores()), communicator);
}

void Node::Parts::start() {
  facts.moves_tasks = moves_tasks(config.runtime.placement, facts);
  if (config.runtime.placement == config::Placement::dynamic && facts.devices == 0) {
    facts.warnings.emplace_back(
        "runtime.placement: dynamic says who runs devices' tasks, and there are no devices");
  }
  clock.local_ns = trace::now_ns();
  clock.offset_ns = communicator.clock_offset_ns();
  const std::vector<Device*> own_devices = device_pointers();
  if (facts.nodes > 1) make_transport(own_devices);
  if (facts.nodes == 1 && program_device_bytes() > 0) {
    local_messages = std::make_unique<LocalMessages>(own_devices, program_device_bytes());
  }
  start_together(own_devices);
}

std::vector<Device*> Node::Parts::device_pointers() const {
  std::vector<Device*> pointers;
  for (const auto& device : devices.devices) pointers.push_back(device.get());
  return pointers;
}

/// Most programs on a single node send themselves no messages: memory for them is taken when they
/// are asked for.
std::shared_ptr<UserMessages> Node::Parts::user_messages() {
  if (tiles != nullptr) return tiles->user_messages();
  const std::scoped_lock lock(local_messages_mutex);
  if (local_messages == nullptr) {
    local_messages = std::make_unique<LocalMessages>(device_pointers(), 0);
  }
  return local_messages->user_messages();
}

void Node::Parts::make_engine(const std::vector<Device*>& device_pointers,
                              std::span<const CpuCore> cores) {
  EngineOptions options = engine_options(device_pointers, cores);
  facts.lends_tasks =
      options.lending && is_worth_lending(*options.lending, device_pointers, facts.cpu_workers);
  if (!facts.lends_tasks) options.lending.reset();
  store = std::make_unique<TileStore>(
      device_pointers, facts.memory_available_bytes,
      facts.lends_tasks ? TileStore::Backings::all : TileStore::Backings::as_needed);
  engine = std::make_unique<Engine>(options, *store, recorder);
}

EngineOptions Node::Parts::engine_options(const std::vector<Device*>& device_pointers,
                                          std::span<const CpuCore> cores) const {
  EngineOptions options;
  options.node = NodeId{facts.rank};
  options.node_count = facts.nodes;
  options.cpu_workers = facts.cpu_workers;
  options.devices = device_pointers;
  options.window = facts.window;
  options.wait = wait_policy(config.runtime.wait);
  options.oversubscribed = facts.oversubscribed;
  options.has_own_cores = !cores.empty();
  if (!cores.empty()) {
    options.worker_distances =
        cache_distances(cores.first(static_cast<std::size_t>(facts.cpu_workers)));
  }
  options.watchdog_seconds = config.runtime.watchdog_seconds;
  options.silence_seconds = config.runtime.silence_seconds;
  options.flops_per_second = [] {
    const KernelTime time = quick_worker_times().front();
    return flops_of(kernel::gsmm, time.rows, time.columns) * 1e6 / time.microseconds;
  };
  options.device_streams = facts.device_streams;
  const bool ranks_paths = config.runtime.priorities == config::Priorities::path;
  if (ranks_paths || facts.moves_tasks) {
    NodeFacts known = facts;
    std::optional<CpuMeasurement>& cpu = known.tuning.measured.cpu;
    if (!cpu) cpu = CpuMeasurement{1, quick_worker_times(), quick_worker_times()};
    const TaskCosts costs = task_costs(known);
    if (ranks_paths) options.path_costs = costs;
    if (facts.moves_tasks) {
      options.lending = {
          faults.placement ? faults.placement : std::make_shared<const DynamicPlacement>(),
          pretended(costs, faults)};
    }
  }
  options.hosts = faults.hosts.empty() ? hosts_of(communicator.hosts(), facts.nodes) : faults.hosts;
  options.readers = reader_way(config.runtime.messages.readers);
  options.faults = faults.messages;
  options.worker_seconds = faults.worker_seconds;
  // A worker holds a temporary that it reads and one that it writes, and leaves some behind that
  // wait for their readers.
  if (faults.extra_blocks_max.has_value()) {
    options.extra_blocks_max = *faults.extra_blocks_max;
  }
  return options;
}

/// Generation; workers; a manager of each device, and who copies for them.
void Node::Parts::start_threads(const std::vector<CpuCore>& cores) {
  const std::int32_t others =
      1 + facts.devices + (facts.devices > 0 ? 1 : 0) + (facts.nodes > 1 ? 1 : 0);
  const auto beside = cores_beside_workers(cores, facts.cpu_workers, others);
  cores_of_others.assign(beside.begin(), beside.end());
  // An emulated device's streams compute and copy, and go where the thread may that makes them.
  const bool streams_compute = devices.backend == DeviceBackend::emulated;
  const std::vector<CpuCore>& cores_of_devices = streams_compute ? cores : cores_of_others;
  launch("generation", cores_of_others, 0,
         [this](auto& trace) { generation_loop(*engine, trace); });
  for (std::int32_t w = 0; w < facts.cpu_workers; ++w) {
    std::vector<CpuCore> core;
    if (!cores.empty()) core.push_back(cores[static_cast<std::size_t>(w)]);
    launch(fmt::format("worker {}", w), core, 10 + w,
           [this, w](auto& trace) { cpu_worker_loop(*engine, w, trace); });
  }
  for (std::int32_t d = 0; d < facts.devices; ++d) {
    launch(fmt::format("device {}", d), cores_of_devices, 1000 + d,
           [this, d](auto& trace) { device_manager_loop(*engine, d, trace); });
  }
  if (facts.devices > 0) {
    launch("copy", cores_of_devices, 2000, [this](auto& trace) { copy_loop(*engine, trace); });
  }
}

void Node::Parts::start_progress(std::shared_future<bool> may_begin) {
  trace::ThreadTrace& trace = recorder.thread("mpi", 3000);
  progress = std::make_unique<MpiProgress>(*engine, communicator, *tiles, trace);
  threads.push_back(start_thread("mpi", [this, may_begin = std::move(may_begin)] {
    if (!may_begin.get()) return;
    try {
      name_current_thread("mpi");
      if (!cores_of_others.empty()) pin_current_thread(cores_of_others);
      progress->run();
    } catch (const std::exception& error) {
      engine->fail(as_error(error));
      progress->run_down();
    }
  }));
}

/// CPU workers, and streams of emulated devices: what calls OpenBLAS at the same time.
std::int64_t Node::Parts::computing_threads() const {
  if (devices.backend != DeviceBackend::emulated) return facts.cpu_workers;
  return facts.cpu_workers + std::int64_t{facts.devices} * (facts.device_streams + 1);
}

/// All nodes have their memory and threads, or none goes on. Until that is known the calling thread
/// calls MPI.
void Node::Parts::start_together(const std::vector<Device*>& device_pointers) {
  std::promise<bool> all_started;
  std::optional<Error> trouble;
  try {
    const std::vector<CpuCore> cores = own_cores();
    take_blas_buffers(computing_threads());
    make_engine(device_pointers, cores);
    start_threads(cores);
    if (facts.nodes > 1) start_progress(all_started.get_future().share());
  } catch (const std::exception& error) {
    trouble = as_error(error);
  }
  try {
    communicator.throw_together(trouble);
  } catch (const Error&) {
    all_started.set_value(false);
    if (engine != nullptr) engine->stop();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    throw;
  }
  all_started.set_value(true);
}

/// A node that was not stopped is left in the middle of something, or may be: what the others want
/// of it will not come. They hear so, and nobody waits for anybody.
Node::Parts::~Parts() {
  if (!threads.empty() && (facts.nodes > 1 || engine->counters().active_jobs() > 0)) {
    const char* const how = std::uncaught_exceptions() > exceptions_at_start
                                ? "an exception left it"
                                : "it was destroyed without Node::stop()";
    engine->fail(
        Error(ErrorCode::communication,
              fmt::format("node {} has gone while others may need it: {}", facts.rank, how)));
  }
  stop_threads();
  if (group_trace != nullptr) group_trace->close();
  local_messages.reset();
  tiles.reset();  // its devices' threads ring the engine's bell
  // What other nodes have sent may still arrive in its receives, in any call of MPI's.
  if (progress != nullptr && engine->failed()) keep_to_the_end(std::move(progress));
}

void Node::Parts::stop_together() {
  if (threads.empty()) return;
  if (!engine->failed()) {
    try {
      engine->jobs().wait_for_all();
    } catch (const Error&) {
      if (!engine->failed()) throw;  // a stream is open, and the node goes on
    }
  }
  if (progress != nullptr && !engine->failed()) {
    try {
      tiles->user_messages()->end();  // nobody stops answering while others still ask
    } catch (const Error&) {
      // The node has failed meanwhile: engine->failure() says why, and nobody is waited for.
    }
  }
  stop_threads();
}

void Node::Parts::stop_threads() {
  if (threads.empty()) return;
  engine->stop();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  if (engine->failed()) communicator.abandon();  // and the progress thread has abandoned the tiles
}

}  // namespace heddle
