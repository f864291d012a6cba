#include "apps/tune.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <mpi.h>
#include <set>
#include <system_error>
#include <utility>

#include "apps/command.hpp"
#include "apps/file_uses.hpp"
#include "apps/report.hpp"
#include "apps/tune_table.hpp"
#include "apps/tuning/copies.hpp"
#include "apps/tuning/cpu.hpp"
#include "apps/tuning/device.hpp"
#include "apps/tuning/group_copies.hpp"
#include "apps/tuning/messages.hpp"
#include "apps/tuning/products.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/cpu/blas_memory.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/tuning.hpp"
#include "node-runtime/wanted_devices.hpp"

namespace heddle {
namespace {

/// Fractions of the total time at which each kind of measurement ends, if there are devices.
constexpr double cpu_ends = 0.35;
constexpr double products_end = 0.6;
constexpr double devices_end = 0.95;

/// Enough to identify kinds of devices and copy between them.
constexpr std::uint64_t small_device_bytes = std::uint64_t{512} << 20;

/// Shows what is being measured: an overwritten line on a terminal, or a line each with -v.
class Teller {
 public:
  Teller(const Launcher& launcher, Verbosity verbosity)
      : line_(verbosity == Verbosity::normal && stderr_is_watched(launcher)),
        all_(verbosity == Verbosity::verbose) {}

  void operator()(const std::string& what, double share) const {
    const double percent = std::clamp(100 * share, 0.0, 100.0);
    if (line_) {
      static_cast<void>(std::fputs(
          fmt::format("\rmeasuring  {:2.0f} %  {:.60}\x1b[K", percent, what).c_str(), stderr));
    } else if (all_) {
      static_cast<void>(
          std::fputs(fmt::format("heddle: info: {:2.0f} % {}\n", percent, what).c_str(), stderr));
    }
    static_cast<void>(std::fflush(stderr));
  }
  void end() const {
    if (line_) static_cast<void>(std::fputs("\r\x1b[K", stderr));
  }

 private:
  bool line_;
  bool all_;
};

/// Path of the output file; creates the folder of the default one.
std::string output_path(const TuneOptions& options, const Host& host) {
  if (options.output) return *options.output;
  const auto path = default_machine_file(host);
  if (!path) {
    throw Error(ErrorCode::usage,
                "no place for the machine file: neither XDG_CACHE_HOME nor HOME is an absolute "
                "path; name a file with --output");
  }
  std::error_code failure;
  std::filesystem::create_directories(path->parent_path(), failure);
  if (failure) {
    throw Error(ErrorCode::usage, fmt::format("cannot make the folder {} for the machine file: {}",
                                              path->parent_path().string(), failure.message()));
  }
  return path->string();
}

/// Earlier measurements of this machine in the file to be replaced; nothing if it is of another
/// machine.
Tuning known_before(const std::string& path, const Host& host) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  try {
    const MachineFile file = read_machine_file(path);
    if (file.host == host.name && file.cpu_model == host.cpu_model) {
      return {file.tuned, file.measured};
    }
  } catch (const Error&) {
    // An unreadable file is replaced.
  }
  return {};
}

/// Process 0's work.
class Tuner {
 public:
  Tuner(const TuneOptions& options, const Config& config, Run& run, tuning::Effort& effort)
      : options_(options), config_(config), run_(run), effort_(effort), host_(describe_host()) {}

  /// Checks the outputs and the environment before measuring.
  void check() {
    path_ = output_path(options_, host_);
    FileUses files;
    if (config_.machine) files.reads("machine", *config_.machine);
    if (config_.logging.file) files.writes("logging.file", *config_.logging.file);
    files.writes(options_.output ? "--output" : "the machine file", path_);
    files.check_distinct();
    files.check_writable(run_.janitor());
    const char* core_type = std::getenv("OPENBLAS_CORETYPE");
    if (core_type != nullptr && *core_type != '\0') {
      throw Error(ErrorCode::usage,
                  fmt::format("OPENBLAS_CORETYPE={} is in the environment, but what is measured "
                              "must hold for runs without it; unset it",
                              core_type));
    }
  }

  void measure(const std::optional<MessageMeasurement>& messages) {
    measured_.messages = messages;
    prepare_kernels();
    const tuning::NormalValues normal;
    find_devices();
    announce();
    effort_.until(kinds_.empty() ? devices_end : cpu_ends);
    measure_workers(normal);
    int number = 0;
    for (const auto& [name, first] : kinds_) {
      ++number;
      const double share = static_cast<double>(number) / static_cast<double>(kinds_.size());
      measure_kind(name, first, cpu_ends + share * (devices_end - cpu_ends), normal);
    }
  }

  void write() {
    const Tuning before = known_before(path_, host_);
    MachineFile file{host_.name, host_.cpu_model, host_.cores, openblas_, kernels_};
    file.tuned = before.fixed;
    file.measured = merge(measured_, before.measured);
    const std::string staged = run_.results().stage(path_);
    const TemporaryName name(run_.janitor(), machine_file_temporary_path(staged).string());
    write_machine_file(staged, file);
    run_.results().commit();
    tuned_ = file.tuned;
  }

  [[nodiscard]] bool has_devices() const { return device_count_ > 0; }
  /// For the first kind of device.
  void add_group_copies(std::vector<StagedCopies> rows) {
    measured_.devices.front().group_copies = std::move(rows);
  }

  [[nodiscard]] std::string table() const {
    NodeFacts facts;
    facts.cpu_workers = facts.cpu_workers_of_all = workers_.count;
    facts.devices = device_count_;
    facts.distribution.devices = device_count_;
    facts.device_backend = measured_.devices.empty() ? "none" : measured_.devices[0].backend;
    facts.device_name = measured_.devices.empty() ? "" : measured_.devices[0].name;
    facts.tuning = {tuned_, measured_};
    return fmt::format("\nheddle {}: measured in {:.1f} s\n{}\n", heddle_version(),
                       effort_.elapsed(), std::string(80, '-')) +
           measurements_table(measured_) + choices_table(facts) +
           fmt::format("\n  {:<18}{}\n", "machine file", path_);
  }

 private:
  void prepare_kernels() {
    const CpuTopology topology = CpuTopology::detect();
    workers_.count = static_cast<std::int32_t>(
        config_.runtime.cpu_workers.value_or(topology.compute_thread_count()));
    static_cast<void>(memory_beside_blas(workers_.count));
    openblas_ = identify_openblas();
    std::optional<std::filesystem::path> named;
    if (config_.machine) named = *config_.machine;
    const MachineProfile profile = prepare_machine(named);
    const auto log = make_log(config_.logging, options_.verbosity, 0, run_.launcher().size);
    for (const std::string& warning : profile.warnings) log->warn(warning);
    if (!profile.kernels) {
      throw Error(ErrorCode::internal,
                  "the kernel sets of this machine could not be measured, so there is nothing "
                  "that further measurements would hold for");
    }
    kernels_ = *profile.kernels;
    explanation_ = profile.explanation;
    static_cast<void>(load_blas(profile.blas));
    const auto cores = topology.cores();
    if (static_cast<std::size_t>(workers_.count) <= cores.size()) {
      workers_.cores.assign(cores.begin(), cores.begin() + workers_.count);
    }
  }

  /// One kind of device at a time, since a device takes the whole GPU memory.
  void find_devices() {
    wanted_ = wanted_devices(config_.runtime.devices);
    DeviceOptions small = wanted_;
    if (!small.cuda.memory_bytes) small.cuda.memory_bytes = small_device_bytes;
    DeviceSet set = make_devices(small);
    device_text_ = set.why;
    device_count_ = static_cast<std::int32_t>(set.devices.size());
    for (const auto& device : set.devices) {
      kinds_.try_emplace(device->info().kind, device->info().index);
    }
    backend_ = set.backend;
  }

  void announce() const {
    if (options_.verbosity == Verbosity::quiet) return;
    const auto row = [](const char* label, const std::string& text) {
      return fmt::format("  {:<18}{}\n", label, text);
    };
    print(fmt::format("heddle: tune, at most {:.0f} s\n", options_.seconds) +
          row("processor", fmt::format("{}, {} worker{}", host_.cpu_model, workers_.count,
                                       workers_.count == 1 ? "" : "s")) +
          row("devices", device_text_) + row("kernels", explanation_) + row("machine file", path_));
  }

  void measure_workers(const tuning::NormalValues& normal) {
    measured_.cpu = tuning::measure_cpu(workers_, normal, effort_);
  }

  void measure_kind(const std::string& name, std::int32_t first, double end,
                    const tuning::NormalValues& normal) {
    DeviceOptions options = wanted_;
    kernel::cuda::ProductChoices products;
    std::int64_t inner = 0;
    if (backend_ == DeviceBackend::cuda) {
      effort_.until(products_end * end / devices_end);
      products = tuning::measure_products(first, name, normal, effort_);
      inner = gpu_inverse_block;
      options.cuda.gpus = {first};
      options.cuda.products = {{name, kernel::cuda::product_library(), products}};
    }
    effort_.until(end);
    DeviceMeasurement result;
    {
      const DeviceSet alone = make_devices(options);
      result = tuning::measure_device(*alone.devices[0], inner, normal, effort_);
    }
    result.products = products;
    if (backend_ == DeviceBackend::cuda) result.library = kernel::cuda::product_library();
    result.copies = measure_copies_of(name);
    measured_.devices.push_back(std::move(result));
  }

  /// Between the first device of a kind and the next one of that kind.
  CopyRates measure_copies_of(const std::string& name) {
    DeviceOptions small = wanted_;
    if (!small.cuda.memory_bytes) small.cuda.memory_bytes = small_device_bytes;
    const DeviceSet set = make_devices(small);
    std::vector<Device*> alike;
    for (const auto& device : set.devices) {
      if (device->info().kind == name) alike.push_back(device.get());
    }
    return tuning::measure_copies(*alike[0], alike.size() > 1 ? alike[1] : nullptr, effort_);
  }

  const TuneOptions& options_;
  const Config& config_;
  Run& run_;
  tuning::Effort& effort_;
  Host host_;
  std::string path_;
  OpenBlasIdentity openblas_;
  KernelChoice kernels_;
  std::string explanation_;
  tuning::Workers workers_;
  DeviceOptions wanted_;
  DeviceBackend backend_ = DeviceBackend::none;
  std::string device_text_;
  std::int32_t device_count_ = 0;
  std::map<std::string, std::int32_t> kinds_;  ///< name and first device of each
  Measurements measured_;
  TunedValues tuned_;
};

/// Copies between the ranks of this host, on a node's devices as a run has them. Collective; only
/// node 0 has a tuner.
void measure_groups(const TuneOptions& options, const Config& config, std::optional<Tuner>& tuner,
                    const tuning::Effort& effort) {
  constexpr double seconds_max = 3;
  const Communicator all(MPI_COMM_WORLD);
  const std::set<std::string> hosts(all.hosts().begin(), all.hosts().end());
  int is_worth_it = tuner && tuner->has_devices() && hosts.size() == 1 && all.size() > 1 ? 1 : 0;
  check_mpi(MPI_Bcast(&is_worth_it, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  if (is_worth_it == 0) return;
  Config wanted = config;
  wanted.runtime.cpu_workers = 1;
  wanted.runtime.devices.per_node = 1;
  wanted.runtime.devices.memory = small_device_bytes / 2;
  wanted.trace = {};
  wanted.machine = output_path(options, describe_host());
  Node node(wanted, MPI_COMM_WORLD);
  const auto tell = [&](const std::string& what) {
    if (tuner) effort.tell(what);
  };
  std::vector<StagedCopies> rows =
      tuning::measure_group_copies(node, std::min(seconds_max, options.seconds / 30), tell);
  node.stop();
  if (!tuner || rows.empty()) return;
  tuner->add_group_copies(std::move(rows));
  tuner->write();
}

}  // namespace

void tune(const TuneOptions& options, Run& run) {
  const bool first = run.launcher().rank == 0;
  const Teller teller(run.launcher(), options.verbosity);
  tuning::Effort effort(options.seconds, teller);
  Config config;
  std::optional<Tuner> tuner;
  run.mpi().throw_together(trouble_of([&] {
    config = Config::from_text("{}", "tune", options.overrides);
    if (!first) return;
    tuner.emplace(options, config, run, effort);
    tuner->check();
  }));
  std::optional<MessageMeasurement> messages;
  if (run.mpi().active()) messages = tuning::measure_messages(MPI_COMM_WORLD, effort);
  const std::optional<Error> trouble = trouble_of([&] {
    if (!first) return;
    tuner->measure(messages);
    tuner->write();
  });
  if (first) teller.end();
  if (run.mpi().active()) tuning::wait_quietly(MPI_COMM_WORLD);
  run.mpi().throw_together(trouble);
  if (run.mpi().active()) {
    run.mpi().throw_together(trouble_of([&] { measure_groups(options, config, tuner, effort); }));
  }
  if (first && options.verbosity != Verbosity::quiet) print(tuner->table());
}

}  // namespace heddle
