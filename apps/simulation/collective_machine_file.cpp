#include "apps/simulation/collective_machine_file.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include <yaml-cpp/yaml.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/units.hpp"
#include "node-runtime/machine/yaml_reader.hpp"

namespace heddle {
namespace {

using replay::CollectiveMachine;
using replay::Reach;
using Links = CollectiveMachine::Links;

constexpr const char* collective_machine_key = "heddle_collective_machine";

struct CountKey {
  const char* key;
  std::int32_t CollectiveMachine::*member;
  std::int64_t least;
};
constexpr std::array<CountKey, 6> count_keys{{{"hosts", &CollectiveMachine::hosts, 1},
                                              {"sockets", &CollectiveMachine::sockets, 1},
                                              {"switches", &CollectiveMachine::switches, 1},
                                              {"gpus", &CollectiveMachine::gpus, 0},
                                              {"ranks", &CollectiveMachine::ranks, 1},
                                              {"card_socket", &CollectiveMachine::card_socket, 0}}};
constexpr std::array<std::pair<const char*, double Links::*>, 6> link_keys{
    {{"gpu_memory", &Links::gpu_memory},
     {"gpu_lane", &Links::gpu_lane},
     {"switch_lane", &Links::switch_lane},
     {"socket_link", &Links::socket_link},
     {"memory", &Links::memory},
     {"card", &Links::card}}};

/// Paths of the keys in the maps, for those who write the last one by itself.
std::vector<std::string> collective_paths() {
  std::vector<std::string> paths{"messages.core_us", "messages.eager",  "messages.rendezvous_us",
                                 "steps.start_us",   "steps.copy_rate", "steps.reduce_rate"};
  for (std::size_t r = 0; r < replay::reaches; ++r) {
    paths.push_back(fmt::format("ways.{}", replay::name_of(static_cast<Reach>(r))));
  }
  for (const auto& [key, member] : link_keys) paths.push_back(fmt::format("links.{}", key));
  return paths;
}

class CollectiveMachineReader {
 public:
  explicit CollectiveMachineReader(YamlReader yaml) : yaml_(std::move(yaml)) {}

  [[nodiscard]] CollectiveMachine read(const YAML::Node& root) const {
    if (!root.IsMap()) yaml_.fail(root.Mark(), "'machine' must be a map");
    if (!root[collective_machine_key]) {
      yaml_.fail(root.Mark(),
                 fmt::format("it is no machine for collectives: the key '{}' is missing",
                             collective_machine_key));
    }
    static_cast<void>(yaml_.whole(root, collective_machine_key, 1, 1));
    CollectiveMachine machine;
    Complaints complaints;
    complaints.of([&] {
      yaml_.expect_map(root, "machine",
                       {collective_machine_key, "name", "hosts", "sockets", "switches", "gpus",
                        "ranks", "card_socket", "ways", "links", "messages", "steps"},
                       collective_paths());
    });
    complaints.of([&] {
      if (root["name"]) machine.name = printable(yaml_.scalar<std::string>(root, "name", "a text"));
    });
    complaints.of([&] { static_cast<void>(yaml_.member(root, "hosts")); });
    for (const CountKey& one : count_keys) {
      complaints.of([&] {
        if (!root[one.key]) return;
        machine.*one.member = static_cast<std::int32_t>(
            yaml_.whole(root, one.key, one.least, CollectiveMachine::ranks_max));
      });
    }
    complaints.of([&] { read_links(root, machine.links); });
    complaints.of([&] { read_costs(root, machine); });
    complaints.raise();
    check_counts(root, machine);
    read_ways(root, machine);
    return machine;
  }

 private:
  void check_counts(const YAML::Node& root, const CollectiveMachine& machine) const {
    const std::array<std::int64_t, 5> factors{machine.hosts, machine.sockets,
                                              machine.gpus > 0 ? machine.switches : 1,
                                              machine.gpus > 0 ? machine.gpus : 1, machine.ranks};
    std::int64_t ranks = 1;
    for (const std::int64_t factor : factors) {
      ranks *= factor;
      if (ranks > CollectiveMachine::ranks_max) {
        yaml_.fail(root.Mark(),
                   fmt::format("the machine has more than {} ranks", CollectiveMachine::ranks_max));
      }
    }
    if (machine.card_socket >= machine.sockets) {
      yaml_.fail(root["card_socket"].Mark(),
                 fmt::format("'card_socket' must be one of the sockets, 0 to {}; found '{}'",
                             machine.sockets - 1, machine.card_socket));
    }
  }

  /// The ways between any two ranks of the machine; others may be there.
  void read_ways(const YAML::Node& root, CollectiveMachine& machine) const {
    const bool has_gpus = machine.gpus > 0;
    const std::array<bool, replay::reaches> is_needed{
        has_gpus && machine.ranks > 1, has_gpus && machine.gpus > 1,
        has_gpus ? machine.switches > 1 : machine.ranks > 1, machine.sockets > 1,
        machine.hosts > 1};
    const YAML::Node ways = root["ways"];
    if (ways) yaml_.expect_map(ways, "ways", {"gpu", "switch", "socket", "host", "network"});
    Complaints complaints;
    for (std::size_t r = 0; r < replay::reaches; ++r) {
      complaints.of([&] {
        const std::string name(replay::name_of(static_cast<Reach>(r)));
        if (ways && ways[name]) {
          read_way(ways[name], name, machine.ways.at(r));
        } else if (is_needed.at(r)) {
          yaml_.fail(ways ? ways.Mark() : root.Mark(),
                     fmt::format("the key 'ways.{}' is missing: some ranks are as far from each "
                                 "other",
                                 name));
        }
      });
    }
    complaints.raise();
  }
  void read_way(const YAML::Node& at, const std::string& name, CollectiveMachine::Way& to) const {
    yaml_.expect_map(at, name, {"latency_us", "rate"});
    to.latency_s = microseconds(at, "latency_us");
    to.bytes_per_s = bytes_per_second(at, "rate");
  }
  void read_links(const YAML::Node& root, Links& links) const {
    const YAML::Node at = root["links"];
    if (!at) return;
    yaml_.expect_map(at, "links",
                     {"gpu_memory", "gpu_lane", "switch_lane", "socket_link", "memory", "card"});
    for (const auto& [key, member] : link_keys) {
      if (at[key]) links.*member = bytes_per_second(at, key);
    }
  }
  void read_costs(const YAML::Node& root, CollectiveMachine& machine) const {
    if (const YAML::Node at = root["messages"]) {
      yaml_.expect_map(at, "messages", {"core_us", "eager", "rendezvous_us"});
      if (at["core_us"]) machine.message_s = microseconds(at, "core_us");
      if (at["rendezvous_us"]) machine.rendezvous_s = microseconds(at, "rendezvous_us");
      if (at["eager"]) machine.eager_bytes = bytes(at, "eager");
    }
    if (const YAML::Node at = root["steps"]) {
      yaml_.expect_map(at, "steps", {"start_us", "reduce_rate", "copy_rate"});
      if (at["start_us"]) machine.step_s = microseconds(at, "start_us");
      if (at["reduce_rate"]) machine.reduced_bytes_per_s = bytes_per_second(at, "reduce_rate");
      if (at["copy_rate"]) machine.copied_bytes_per_s = bytes_per_second(at, "copy_rate");
    }
  }
  [[nodiscard]] double bytes_per_second(const YAML::Node& map, const char* key) const {
    const double rate = yaml_.positive(map, key, "a rate in GB/s above 0");
    return in_range(map, key, rate, 1e-3, 1e6, "a rate in GB/s, 1e-3 to 1e6") * 1e9;
  }
  /// At most a second: times are counted in nanoseconds, millions of them one after the other.
  [[nodiscard]] double microseconds(const YAML::Node& map, const char* key) const {
    constexpr const char* expected = "microseconds, 0 to 1e6";
    return in_range(map, key, yaml_.scalar<double>(map, key, expected), 0, 1e6, expected) * 1e-6;
  }
  [[nodiscard]] double in_range(const YAML::Node& map, const char* key, double value, double least,
                                double most, const char* expected) const {
    if (std::isfinite(value) && least <= value && value <= most) return value;
    yaml_.fail(map[key].Mark(),
               fmt::format("'{}' must be {}; found '{}'", key, expected, map[key].Scalar()));
  }
  [[nodiscard]] std::int64_t bytes(const YAML::Node& map, const char* key) const {
    constexpr std::uint64_t bytes_max = std::uint64_t{1} << 40U;
    const auto text = yaml_.scalar<std::string>(map, key, "a size such as 8KiB");
    try {
      const std::uint64_t value = parse_bytes(text);
      if (value <= bytes_max) return static_cast<std::int64_t>(value);
    } catch (const Error& why) {
      yaml_.fail(map[key].Mark(), fmt::format("'{}': {}", key, why.what()));
    }
    yaml_.fail(map[key].Mark(), fmt::format("'{}' must be at most 1 TiB; found '{}'", key, text));
  }

  YamlReader yaml_;
};

}  // namespace

CollectiveMachine read_collective_machine(const std::string& path) {
  const YamlReader file(fmt::format("machine file {}", path));
  CollectiveMachine machine = CollectiveMachineReader(file).read(file.load_file(path));
  if (machine.name.empty()) machine.name = path;
  return machine;
}

}  // namespace heddle
