#include "apps/bench_virtual.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "apps/collective_cases.hpp"
#include "apps/command.hpp"
#include "apps/file_uses.hpp"
#include "apps/report.hpp"
#include "apps/simulation/collective_machine_file.hpp"
#include "base/error.hpp"
#include "base/median.hpp"
#include "base/require.hpp"
#include "replay/collectives/virtual_group.hpp"

namespace heddle {
namespace {

using collectives::CollectiveKind;
using replay::CollectiveMachine;
using replay::RankMap;
using replay::VirtualOutcome;

constexpr std::array<std::pair<std::string_view, RankMap>, 3> map_names{
    {{"by-core", RankMap::by_core}, {"by-node", RankMap::by_node}, {"random", RankMap::random}}};

/// The times of one operation, for one size and number of nodes, on each map.
struct VirtualRow {
  CollectiveCase what;
  std::int32_t nodes = 0;
  std::vector<double> us;
  VirtualOutcome outcome;  ///< on the first map
};

CollectiveKind kind_of(std::string_view operation) {
  int kind = 0;
  while (name_of(static_cast<CollectiveKind>(kind)) != operation) ++kind;
  return static_cast<CollectiveKind>(kind);
}

RankMap map_of(const std::string& name) {
  const auto* const found =
      std::ranges::find(map_names, name, &std::pair<std::string_view, RankMap>::first);
  if (found != map_names.end()) return found->second;
  throw Error(ErrorCode::usage,
              fmt::format("--map {}: expected one of by-core, by-node, random", name));
}

class VirtualBench {
 public:
  VirtualBench(const BenchCollectivesOptions& options, const CollectiveMachine& machine)
      : options_(options), machine_(machine), map_(map_of(options.simulated.map)) {
    overrides_ = collectives::overrides_of(options.algorithm);
    require(!overrides_.device_way,
            "--algorithm {}: it is for memory of devices of one host, which --machine does not "
            "simulate",
            options.algorithm);
    if (options.fragment_bytes > 0) overrides_.fragment_bytes = options.fragment_bytes;
    nodes_ = options.simulated.nodes;
    if (nodes_.empty()) nodes_.push_back(static_cast<std::int32_t>(machine.slots()));
    // Before the first one runs.
    for (const std::int32_t nodes : nodes_) static_cast<void>(group_of(nodes, 0));
  }

  [[nodiscard]] std::vector<VirtualRow> run(const Run& run) const {
    std::vector<VirtualRow> rows;
    for (const CollectiveCase& what :
         collective_cases(options_.operations, options_.bytes_min, options_.bytes_max)) {
      for (const std::int32_t nodes : nodes_) {
        rows.push_back(row_of(what, nodes));
        if (run.interrupted()) throw Error(ErrorCode::interrupted, "interrupted");
      }
    }
    return rows;
  }

 private:
  [[nodiscard]] replay::VirtualGroup group_of(std::int32_t nodes, std::int32_t map) const {
    const std::uint64_t seed = options_.simulated.seed + static_cast<std::uint64_t>(map);
    return {machine_, replay::slots_of_ranks(machine_, nodes, map_, seed)};
  }
  [[nodiscard]] VirtualRow row_of(const CollectiveCase& what, std::int32_t nodes) const {
    replay::VirtualOperation operation;
    operation.kind = kind_of(what.operation);
    operation.count = what.bytes / operation.element_bytes;
    operation.overrides = overrides_;
    VirtualRow row{what, nodes, {}, {}};
    const std::int32_t maps = map_ == RankMap::random ? options_.simulated.maps : 1;
    for (std::int32_t map = 0; map < maps; ++map) {
      VirtualOutcome outcome = group_of(nodes, map).run(operation);
      row.us.push_back(outcome.seconds * 1e6);
      if (map == 0) row.outcome = std::move(outcome);
    }
    return row;
  }

  const BenchCollectivesOptions& options_;
  const CollectiveMachine& machine_;
  RankMap map_;
  collectives::CollectiveOverrides overrides_;
  std::vector<std::int32_t> nodes_;
};

std::string explanation_of(const VirtualRow& row) {
  const VirtualOutcome& outcome = row.outcome;
  const auto line = [](double us, const std::string& text) {
    return fmt::format("{:>32} {:>12.2f}  {}\n", "", us, text);
  };
  std::string out = line(outcome.choice.seconds * 1e6, "predicted: " + outcome.choice.text());
  for (std::size_t k = 1; k < outcome.choice.considered.size(); ++k) {
    const collectives::CollectiveChoice::Candidate& other = outcome.choice.considered[k];
    out += line(other.seconds * 1e6, "not " + other.text);
  }
  if (!outcome.busiest.empty()) {
    out += fmt::format("{:>32} {:>11.0f} %  in use: {}\n", "", 100 * outcome.busiest_share,
                       outcome.busiest);
  }
  return out;
}

std::string table_of(const std::vector<VirtualRow>& rows, bool explains, bool has_maps) {
  std::string out =
      fmt::format("{:<15} {:>10} {:>6} {:>12} {}{:>8} {:>10}\n", "operation", "bytes", "nodes",
                  "us", has_maps ? fmt::format("{:>25} ", "range") : "", "GB/s", "messages");
  for (const VirtualRow& row : rows) {
    const double us = median(row.us);
    const auto [least, most] = std::ranges::minmax(row.us);
    const std::string range =
        has_maps ? fmt::format("{:>25} ", fmt::format("{:.2f} to {:.2f}", least, most)) : "";
    const double rate = bus_gb_per_second(row.what, us, row.nodes);
    out += fmt::format("{:<15} {:>10} {:>6} {:>12.2f} {}{:>8} {:>10}\n", row.what.operation,
                       row.what.bytes, row.nodes, us, range,
                       row.what.bytes > 0 && us > 0 ? fmt::format("{:.2f}", rate) : "-",
                       row.outcome.messages);
    if (explains) out += explanation_of(row);
  }
  return out;
}

void write_rows(const std::vector<VirtualRow>& rows, const BenchCollectivesOptions& options,
                const CollectiveMachine& machine, Run& run) {
  nlohmann::json list = nlohmann::json::array();
  for (const VirtualRow& row : rows) {
    const double us = median(row.us);
    const VirtualOutcome& outcome = row.outcome;
    const bool has_rate = row.what.bytes > 0 && us > 0;
    list.push_back(
        {{"operation", row.what.operation},
         {"bytes", row.what.bytes},
         {"ranks", row.nodes},
         {"microseconds", us},
         {"microseconds_of_maps", row.us},
         {"gb_per_second",
          has_rate ? nlohmann::json(bus_gb_per_second(row.what, us, row.nodes)) : nullptr},
         {"predicted_microseconds", outcome.choice.seconds * 1e6},
         {"algorithm", outcome.choice.text()},
         {"messages", outcome.messages},
         {"busiest_link",
          outcome.busiest.empty() ? nlohmann::json(nullptr) : nlohmann::json(outcome.busiest)},
         {"busiest_link_share", outcome.busiest_share}});
  }
  const nlohmann::json all{{"version", heddle_version()},    {"simulated", true},
                           {"machine", machine.name},        {"map", options.simulated.map},
                           {"seed", options.simulated.seed}, {"collectives", std::move(list)}};
  run.results().add_text(*options.report, json_text(all));
  run.results().commit();
}

}  // namespace

int bench_virtual(const BenchCollectivesOptions& options, Run& run) {
  CollectiveMachine machine;
  std::optional<VirtualBench> bench;
  run.mpi().throw_together(trouble_of([&] {
    if (run.launcher().size > 1) {
      throw Error(ErrorCode::usage,
                  "--machine simulates all nodes in one process: start it without mpiexec");
    }
    check_collective_cases(options.operations, options.bytes_min, options.bytes_max);
    FileUses files;
    files.reads("--machine", *options.simulated.machine);
    if (options.report) files.writes("--report", *options.report);
    files.check_distinct();
    machine = read_collective_machine(*options.simulated.machine);
    bench.emplace(options, machine);
    files.check_writable(run.janitor());
  }));
  const bool has_maps = options.simulated.maps > 1;
  const std::vector<VirtualRow> rows = bench->run(run);
  if (options.verbosity != Verbosity::quiet) {
    print(
        fmt::format("heddle {}: bench collectives, simulated on {}, float64, ranks {}{}\nSlowest "
                    "rank; bytes of a rank's block.\n\n",
                    heddle_version(), machine.name, options.simulated.map,
                    has_maps ? fmt::format(", median of {} maps", options.simulated.maps) : ""));
    print(table_of(rows, options.explains, has_maps));
  }
  if (options.report) write_rows(rows, options, machine, run);
  return 0;
}

}  // namespace heddle
