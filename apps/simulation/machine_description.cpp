#include "apps/simulation/machine_description.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include <yaml-cpp/yaml.h>

#include "apps/simulation/machine_hosts.hpp"
#include "apps/simulation/tuned_machine.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/units.hpp"
#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/machine/measurements_yaml.hpp"
#include "node-runtime/machine/yaml_reader.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {
namespace {

using replay::Way;

constexpr const char* version_key = "heddle_simulated_machine";
constexpr const char* tuned_key = "heddle_machine";  ///< of what heddle tune writes

/// Most nodes, and most workers, cores or streams of a node.
constexpr std::int64_t counts_max = 1'000'000;

using Machine = replay::SimulatedMachine;
constexpr std::array<std::pair<const char*, Way Machine::*>, 5> ways_of_machine{
    {{"to_device", &Machine::to_device},
     {"to_host", &Machine::to_host},
     {"to_peer", &Machine::to_peer},
     {"network", &Machine::network},
     {"memory", &Machine::memory}}};
constexpr std::array<std::pair<const char*, double Machine::*>, 11> runtime_costs{
    {{"append_us", &Machine::append_s},
     {"task_us", &Machine::task_s},
     {"wake_us", &Machine::wake_s},
     {"refill_us", &Machine::refill_s},
     {"launch_us", &Machine::launch_s},
     {"notice_us", &Machine::notice_s},
     {"message_us", &Machine::message_s},
     {"read_us", &Machine::read_s},
     {"pause_us", &Machine::pause_s},
     {"look_us", &Machine::look_s},
     {"job_us", &Machine::job_s}}};

/// Paths of the keys in a machine's maps.
std::vector<std::string> paths_below() {
  std::vector<std::string> paths{"kernels.host", "kernels.device", "kernels.noise"};
  for (const auto& [key, way] : ways_of_machine) {
    for (const char* of_way : {"latency_us", "rate"}) {
      paths.push_back(fmt::format("{}.{}", key, of_way));
    }
  }
  for (const auto& [key, cost] : runtime_costs) paths.push_back(fmt::format("runtime.{}", key));
  return paths;
}

/// "a.b.c=value" into a tree.
void set_key(const YAML::Node& root, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorCode::usage,
                fmt::format("--set machine.{}: expected machine.KEY=VALUE", text));
  }
  YAML::Node at = root;  // a reference to what is there
  std::size_t begin = 0;
  for (;;) {
    const std::size_t dot = text.find('.', begin);
    if (dot == std::string::npos || dot > equals) break;
    at.reset(at[text.substr(begin, dot - begin)]);
    begin = dot + 1;
  }
  try {
    at[text.substr(begin, equals - begin)] = YAML::Load(text.substr(equals + 1));
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::usage, fmt::format("--set machine.{}: {}", text, error.what()));
  }
}

/// Reads what is there, and leaves what is not.
class DescriptionReader {
 public:
  explicit DescriptionReader(YamlReader yaml) : yaml_(std::move(yaml)) {}

  void read(const YAML::Node& root, MachineDescription& to) const {
    if (!root.IsMap()) yaml_.fail(root.Mark(), "'machine' must be a map");
    if (yaml_.whole(root, version_key, 1) != 1) {
      yaml_.fail(root[version_key].Mark(), fmt::format("'{}' must be 1", version_key));
    }
    Complaints complaints;
    complaints.of([&] {
      yaml_.expect_map(
          root, "machine",
          {version_key,      "name",         "nodes",         "nodes_per_host", "hosts",
           "interface",      "cpu_workers",  "cores",         "devices",        "device_memory",
           "device_streams", "stream_depth", "inverse_block", "to_device",      "to_host",
           "to_peer",        "network",      "memory",        "runtime",        "kernels"},
          paths_below());
    });
    replay::SimulatedMachine& machine = to.machine;
    complaints.of([&] {
      if (root["name"]) machine.name = printable(yaml_.scalar<std::string>(root, "name", "a text"));
    });
    const auto read_count = [&](const char* key, std::int64_t least, std::int64_t most,
                                std::int32_t& value) {
      complaints.of([&] { count(root, key, least, most, value); });
    };
    read_count("nodes", 1, counts_max, machine.nodes);
    read_count("nodes_per_host", 1, counts_max, machine.nodes_per_host);
    complaints.of([&] { read_hosts(yaml_, root, machine); });
    complaints.of([&] { read_interface(yaml_, root, machine); });
    read_count("cpu_workers", 1, counts_max, machine.cpu_workers);
    read_count("cores", 0, counts_max, machine.cores);
    read_count("devices", 0, protocol::places_max - 1, machine.devices);
    read_count("device_streams", 1, counts_max, machine.device_streams);
    read_count("stream_depth", 1, counts_max, machine.stream_depth);
    complaints.of([&] {
      if (root["device_memory"]) machine.device_memory_bytes = bytes(root, "device_memory");
    });
    complaints.of([&] {
      if (root["inverse_block"]) to.inverse_block = yaml_.whole(root, "inverse_block", 0);
    });
    for (const auto& [key, member] : ways_of_machine) {
      const char* const name = key;
      Way& of_machine = machine.*member;
      complaints.of([&] { way(root, name, of_machine); });
    }
    complaints.of([&] {
      if (root["runtime"]) read_runtime(root["runtime"], machine);
    });
    complaints.of([&] {
      if (root["kernels"]) read_kernels(root["kernels"], to);
    });
    complaints.raise();
  }

 private:
  void count(const YAML::Node& map, const char* key, std::int64_t least, std::int64_t most,
             std::int32_t& to) const {
    if (!map[key]) return;
    to = static_cast<std::int32_t>(yaml_.whole(map, key, least, most));
  }
  [[nodiscard]] std::uint64_t bytes(const YAML::Node& map, const char* key) const {
    try {
      return parse_bytes(yaml_.scalar<std::string>(map, key, "a size such as 6GiB"));
    } catch (const Error& why) {
      yaml_.fail(map[key].Mark(), fmt::format("'{}': {}", key, why.what()));
    }
  }
  void way(const YAML::Node& map, const char* key, Way& to) const {
    const YAML::Node at = map[key];
    if (!at) return;
    yaml_.expect_map(at, key, {"latency_us", "rate"});
    if (at["latency_us"]) to.latency_s = microseconds(at, "latency_us");
    if (at["rate"]) to.bytes_per_s = 1e9 * yaml_.positive(at, "rate", "a rate in GB/s above 0");
  }
  [[nodiscard]] double microseconds(const YAML::Node& map, const char* key) const {
    const auto value = yaml_.scalar<double>(map, key, "microseconds, at least 0");
    if (!std::isfinite(value) || value < 0) {
      yaml_.fail(map[key].Mark(), fmt::format("'{}' must be microseconds, at least 0", key));
    }
    return value * 1e-6;
  }
  void read_runtime(const YAML::Node& map, replay::SimulatedMachine& to) const {
    yaml_.expect_map(map, "runtime",
                     {"append_us", "task_us", "wake_us", "refill_us", "launch_us", "notice_us",
                      "message_us", "read_us", "pause_us", "look_us", "job_us"});
    for (const auto& [key, cost] : runtime_costs) {
      if (map[key]) to.*cost = microseconds(map, key);
    }
  }
  void read_kernels(const YAML::Node& map, MachineDescription& to) const {
    yaml_.expect_map(map, "kernels", {"host", "device", "noise"});
    if (map["host"]) to.host = rates(map["host"], "kernels.host", true);
    if (map["device"]) to.device = rates(map["device"], "kernels.device", false);
    if (map["noise"]) to.noise = noise(map);
  }
  [[nodiscard]] KernelNoise noise(const YAML::Node& map) const {
    constexpr const char* expected = "'recorded', or standard deviation over mean, 0 to 3";
    if (yaml_.scalar<std::string>(map, "noise", expected) == "recorded") {
      return {.recorded = true};
    }
    const auto variation = yaml_.scalar<double>(map, "noise", expected);
    if (!(variation >= 0 && variation <= 3)) {
      yaml_.fail(map["noise"].Mark(), fmt::format("'noise' must be {}", expected));
    }
    return {.variation = variation};
  }
  [[nodiscard]] std::vector<KernelRate> rates(const YAML::Node& list, const std::string& name,
                                              bool of_workers) const {
    yaml_.expect_list(list, name);
    std::vector<KernelRate> result;
    result.reserve(list.size());
    Complaints complaints;
    for (const YAML::Node& entry : list) {
      complaints.of([&] { result.push_back(rate(entry, of_workers)); });
    }
    complaints.raise();
    return result;
  }
  [[nodiscard]] KernelRate rate(const YAML::Node& entry, bool of_workers) const {
    if (of_workers) {
      yaml_.expect_map(entry, "a kernel's rate", {"kernel", "size", "gflops", "workers"});
    } else {
      yaml_.expect_map(entry, "a kernel's rate", {"kernel", "size", "gflops"});
    }
    KernelRate rate{read_measured_kernel(yaml_, entry),
                    yaml_.positive(entry, "size", "columns of a tile, above 0"),
                    yaml_.positive(entry, "gflops", "GFLOP/s, above 0")};
    count(entry, "workers", 1, counts_max, rate.workers);
    return rate;
  }

  YamlReader yaml_;
};

/// The least dimension of what a case computes.
double size_of(const KernelCase& what) {
  std::int64_t least = std::min(what.operands[0].rows, what.operands[0].columns);
  if (what.operands.size() > 1) least = std::min(least, what.operands[1].columns);
  return static_cast<double>(std::max<std::int64_t>(1, least));
}

double seconds_by(const std::vector<KernelRate>& rates, const KernelCase& what,
                  std::int32_t workers) {
  const double size = size_of(what);
  const double flops = flops_of(what);
  if (flops > 0) {
    const auto rate = rate_at(rates, *what.kernel, size, workers);
    return rate ? flops / (*rate * 1e9) : 0;
  }
  // copy_rows and copy_triangle: a column of a product each 32 operations.
  const auto rate = rate_at(rates, kernel::gsmm, size, workers);
  const OperandShape& to = what.operands[0];
  return rate ? static_cast<double>(to.rows * to.columns) / 16 / (*rate * 1e9) : 0;
}

/// Rate of `kernel` at a size among those for one number of workers.
std::optional<double> rate_with(const std::vector<KernelRate>& rates, const Kernel& kernel,
                                double size, std::int32_t workers) {
  const KernelRate* below = nullptr;
  const KernelRate* above = nullptr;
  for (const KernelRate& rate : rates) {
    if (rate.kernel != &kernel || rate.workers != workers) continue;
    if (rate.size <= size && (below == nullptr || rate.size > below->size)) below = &rate;
    if (rate.size >= size && (above == nullptr || rate.size < above->size)) above = &rate;
  }
  if (below == nullptr && above == nullptr) return std::nullopt;
  if (below == nullptr) return above->gflops;
  if (above == nullptr || above->size == below->size) return below->gflops;
  const double part = std::log(size / below->size) / std::log(above->size / below->size);
  return below->gflops * std::pow(above->gflops / below->gflops, part);
}

}  // namespace

std::optional<double> rate_at(const std::vector<KernelRate>& rates, const Kernel& kernel,
                              double size, std::int32_t workers) {
  std::int32_t fewer = 0;
  std::int32_t more = 0;
  for (const KernelRate& rate : rates) {
    if (rate.kernel != &kernel || rate.workers == 0) continue;
    if (rate.workers <= workers) fewer = std::max(fewer, rate.workers);
    if (rate.workers >= workers && (more == 0 || rate.workers < more)) more = rate.workers;
  }
  if (fewer == 0) fewer = more;
  if (more == 0) more = fewer;
  const auto low = rate_with(rates, kernel, size, fewer);
  const auto high = rate_with(rates, kernel, size, more);
  if (!low || !high || fewer == more) return low;
  const double part =
      std::log(static_cast<double>(workers) / fewer) / std::log(static_cast<double>(more) / fewer);
  return *low * std::pow(*high / *low, part);
}

double MachineClock::seconds(const KernelCase& what, Runner runner) {
  if (runner == Runner::device) return seconds_by(machine_.device, what, 1);
  if (host_ != nullptr) return host_->seconds(what, runner);
  return seconds_by(machine_.host, what, machine_.machine.workers_on_host());
}

std::string MachineClock::source() const {
  if (host_ == nullptr) return "by the machine file's rates";
  if (machine_.machine.devices == 0) return host_->source();
  return fmt::format("as measured here, devices' by {} rates", machine_.device_source);
}

namespace {

constexpr std::array<const Kernel*, 4> cholesky_kernels{&kernel::gsmm, &kernel::syrk, &kernel::trsm,
                                                        &kernel::potrf};

KernelTimes times_of(const std::vector<KernelRate>& rates, std::int32_t workers) {
  std::set<double> sizes;
  for (const KernelRate& rate : rates) {
    if (rate.kernel == &kernel::gsmm) sizes.insert(rate.size);
  }
  KernelTimes times;
  for (const Kernel* kernel : cholesky_kernels) {
    for (const double size : sizes) {
      const auto rate = rate_at(rates, *kernel, size, workers);
      if (!rate) return {};
      const auto tile = static_cast<std::int64_t>(size);
      times.push_back({kernel, tile, tile, 0, flops_of(*kernel, tile, tile) / (*rate * 1e3)});
    }
  }
  return times;
}

/// A list is of as many nodes and hosts as it was written for.
void forget_listed_hosts(replay::SimulatedMachine& machine) {
  if (machine.host_order != replay::HostOrder::listed) return;
  machine.host_order = replay::HostOrder::consecutive;
  machine.hosts.clear();
}

double gigabytes_per_s(const replay::Way& way) {
  return way.bytes_per_s * 1e-9;
}

}  // namespace

Measurements measurements_of(const MachineDescription& description) {
  const replay::SimulatedMachine& machine = description.machine;
  Measurements result;
  if (KernelTimes host = times_of(description.host, machine.workers_on_host()); !host.empty()) {
    result.cpu = CpuMeasurement{machine.cpu_workers, {}, std::move(host)};
  }
  if (KernelTimes device = times_of(description.device, 1); !device.empty()) {
    DeviceMeasurement& one = result.devices.emplace_back();
    one.backend = description.device_backend;
    one.name = description.device_source;
    one.streams = machine.device_streams;
    one.kernels = std::move(device);
    one.copies.to_device = gigabytes_per_s(machine.to_device);
    one.copies.to_host = gigabytes_per_s(machine.to_host);
    one.copies.to_peer = gigabytes_per_s(machine.to_peer);
  }
  const replay::Way& way = machine.host_count() > 1 ? machine.network : machine.memory;
  if (machine.nodes > 1) {
    result.messages = MessageMeasurement{way.latency_s * 1e6, gigabytes_per_s(way)};
  }
  return result;
}

MachineDescription read_machine_description(const std::optional<std::string>& path,
                                            const std::vector<std::string>& overrides,
                                            const MachineDescription& defaults) {
  const YamlReader file(path ? fmt::format("machine file {}", *path) : "machine");
  const YAML::Node nothing = file.load_text(fmt::format("{}: 1", version_key));
  YAML::Node root = path ? file.load_file(*path) : nothing;
  MachineDescription known = defaults;
  if (root.IsMap() && root[tuned_key]) {
    known = tuned_machine(*path, defaults);
    root = nothing;
  } else if (path && root.IsMap() && !root["cores"]) {
    known.machine.cores = 0;  // of another machine's
  }
  MachineDescription result = known;
  DescriptionReader(file).read(root, result);
  for (const std::string& text : overrides) {
    set_key(root, text);
    // One by one, so that a complaint is about the one that has caused it.
    result = known;
    const YamlReader yaml("--set machine." + text, {}, YamlReader::Places::unknown);
    DescriptionReader(yaml).read(root, result);
  }
  const bool says_nodes_per_host = static_cast<bool>(root["nodes_per_host"]);
  if (!root["hosts"] && (root["nodes"] || says_nodes_per_host)) {
    forget_listed_hosts(result.machine);
  }
  settle_hosts(result.machine, says_nodes_per_host);
  return result;
}

}  // namespace heddle
