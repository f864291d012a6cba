#include "apps/collective_table.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "apps/report.hpp"
#include "base/median.hpp"

namespace heddle {
namespace {

using nlohmann::json;

constexpr std::string_view row_form =
    "{:<15} {:>10} {:>10} {:>10} {:>8} {:>10} {:>10} {:>7} {:>7}  {}\n";

std::string median_or_dash(const std::vector<double>& us) {
  return us.empty() ? "-" : fmt::format("{:.2f}", median(us));
}

std::string ratio_or_dash(const std::vector<double>& other_us, double us) {
  return other_us.empty() ? "-" : fmt::format("{:.2f}", median(other_us) / us);
}

json median_or_null(const std::vector<double>& us) {
  return us.empty() ? json(nullptr) : json(median(us));
}

std::string explanation(const MeasuredCollective& one) {
  std::string out = fmt::format("{:<15} {:>10} {:>10.2f}  predicted beside the board: {}\n", "", "",
                                one.predicted_us, one.algorithm);
  if (one.ranks_us > 0) {
    out += fmt::format("{:>39} in the order of ranks {:.2f} us, of places {:.2f} us\n", "",
                       one.ranks_us, one.places_us);
  }
  for (const std::string& other : one.others) out += fmt::format("{:>39} {}\n", "not", other);
  return out;
}

}  // namespace

std::string collectives_table(const std::vector<MeasuredCollective>& cases, int ranks,
                              bool explains) {
  std::string out = fmt::format(fmt::runtime(row_form), "operation", "bytes", "us", "p99", "GB/s",
                                "in place", "MPI us", "MPI", "limit", "");
  for (const MeasuredCollective& one : cases) {
    const double us = median(one.heddle_us);
    out += fmt::format(
        fmt::runtime(row_form), one.operation, one.bytes, fmt::format("{:.2f}", us),
        median_or_dash(one.heddle_p99_us),
        one.bytes > 0 ? fmt::format("{:.2f}", bus_gb_per_second(one, us, ranks)) : "-",
        median_or_dash(one.in_place_us), median_or_dash(one.mpi_us), ratio_or_dash(one.mpi_us, us),
        ratio_or_dash(one.limit_us, us), one.is_right ? "" : "WRONG");
    if (explains) out += explanation(one);
  }
  return out;
}

void write_collectives(const std::vector<MeasuredCollective>& cases,
                       const CollectivesSetting& setting, const std::string& path, Run& run) {
  const int ranks = setting.ranks;
  json list = json::array();
  for (const MeasuredCollective& one : cases) {
    const double us = median(one.heddle_us);
    list.push_back({{"operation", one.operation},
                    {"bytes", one.bytes},
                    {"ranks", ranks},
                    {"microseconds", us},
                    {"p99_microseconds", median(one.heddle_p99_us)},
                    {"in_place_microseconds", median_or_null(one.in_place_us)},
                    {"gb_per_second", bus_gb_per_second(one, us, ranks)},
                    {"mpi_microseconds", median_or_null(one.mpi_us)},
                    {"limit_microseconds", median_or_null(one.limit_us)},
                    {"valid", one.is_right}});
  }
  const json all{{"version", heddle_version()},
                 {"place", setting.place},
                 {"datatype", setting.datatype},
                 {"calls", setting.is_on_stream ? "stream" : "blocking"},
                 {"collectives", std::move(list)}};
  run.results().add_text(path, json_text(all));
  run.results().commit();
}

}  // namespace heddle
