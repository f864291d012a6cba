#include "apps/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"

namespace heddle {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> status_names{"ok", "not_positive_definite",
                                                       "rank_deficient", "failed"};

template <class T>
json nullable(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

// The JSON library writes non-finite numbers as null but keeps them in memory.
json nullable(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? json(*value) : json();
}

json nullable(const std::optional<std::vector<double>>& values) {
  if (!values) return {};
  json list = json::array();
  for (const double value : *values) list.push_back(nullable(std::optional(value)));
  return list;
}

json thread_to_json(const Report::Thread& thread) {
  return {{"role", thread.role},
          {"node", thread.node},
          {"busy", thread.busy},
          {"waiting", thread.waiting},
          {"tasks", thread.tasks}};
}

template <class T>
void read(const json& from, const char* name, T& field) {
  field = from.at(name).get<T>();
}

template <class T>
void read(const json& from, const char* name, std::optional<T>& field) {
  const json& value = from.at(name);
  field = value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

void read(const json& from, const char* name, std::optional<std::vector<double>>& field) {
  field.reset();
  if (from.at(name).is_null()) return;
  field.emplace();
  for (const json& value : from.at(name)) {
    field->push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                     : value.get<double>());
  }
}

Report::Thread thread_from_json(const json& from) {
  Report::Thread thread;
  read(from, "role", thread.role);
  read(from, "node", thread.node);
  read(from, "busy", thread.busy);
  read(from, "waiting", thread.waiting);
  read(from, "tasks", thread.tasks);
  return thread;
}

RunStatus status_from(const std::string& name) {
  const auto found = std::find(status_names.begin(), status_names.end(), name);
  if (found == status_names.end()) {
    throw Error(ErrorCode::usage, fmt::format("report: status '{}' is none of {}", name,
                                              fmt::join(status_names, ", ")));
  }
  return static_cast<RunStatus>(found - status_names.begin());
}

void read_problem(const json& from, Report& report) {
  report.status = status_from(from.at("status").get<std::string>());
  read(from, "info", report.info);
  read(from, "hint", report.hint);
  read(from, "m", report.m);
  read(from, "n", report.n);
  read(from, "nrhs", report.nrhs);
  read(from, "factorization", report.factorization);
  read(from, "nodes", report.nodes);
  read(from, "nodes_per_host", report.nodes_per_host);
  report.grid = {from.at("grid").at(0).get<std::int64_t>(),
                 from.at("grid").at(1).get<std::int64_t>()};
  read(from, "tile", report.tile);
  read(from, "strip", report.strip);
  read(from, "small", report.small);
  report.hierarchy = from.value("hierarchy", report.hierarchy);
  report.placement = from.value("placement", report.placement);
  report.verification = from.value("verification", report.verification);
  read(from, "inner", report.inner);
  read(from, "virtual", report.virtual_tiles);
  read(from, "tree", report.tree);
  report.chosen = from.value("chosen", report.chosen);
  read(from, "cpu_workers", report.cpu_workers);
  report.window = from.value("window", report.window);
  report.priorities = from.value("priorities", report.priorities);
  read(from, "devices", report.devices);
  read(from, "device_backend", report.device_backend);
  read(from, "blas_kernels", report.blas_kernels);
  read(from, "machine_file", report.machine_file);
  read(from, "version", report.version);
  read(from, "reproducible", report.reproducible);
}

void read_measurements(const json& from, Report& report) {
  const json& seconds = from.at("seconds");
  read(seconds, "total", report.seconds.total);
  read(seconds, "start", report.seconds.start);
  read(seconds, "read", report.seconds.read);
  if (seconds.contains("prepare")) read(seconds, "prepare", report.seconds.prepare);
  read(seconds, "factor", report.seconds.factor);
  if (seconds.contains("overlap")) read(seconds, "overlap", report.seconds.overlap);
  read(seconds, "solve", report.seconds.solve);
  read(seconds, "verify", report.seconds.verify);
  read(seconds, "write", report.seconds.write);
  if (from.contains("stolen")) read(from, "stolen", report.stolen);
  read(from, "gflops", report.gflops);
  read(from, "gemm_gflops", report.gemm_gflops);
  read(from, "efficiency", report.efficiency);
  read(from, "residual", report.residual);
  read(from, "factorization_residual", report.factorization_residual);
  read(from, "solution_residual", report.solution_residual);
  read(from, "residual_norms", report.residual_norms);
  read(from, "orthogonality", report.orthogonality);
  read(from, "log_determinant", report.log_determinant);
  read(from, "tasks", report.tasks);
  read(from, "messages", report.messages);
  read(from, "bytes_sent", report.bytes_sent);
  read(from, "copies", report.copies);
  read(from, "bytes_copied", report.bytes_copied);
  read(from, "evictions", report.evictions);
  report.tasks_lent = from.value("tasks_lent", report.tasks_lent);
  read(from.at("peak_bytes"), "host", report.peak_bytes.host);
  read(from.at("peak_bytes"), "device", report.peak_bytes.device);
  if (from.contains("device_memory")) read(from, "device_memory", report.device_memory);
  for (const json& row : from.at("threads")) report.threads.push_back(thread_from_json(row));
}

}  // namespace

std::string_view status_name(RunStatus status) {
  return status_names.at(static_cast<std::size_t>(status));
}

std::string_view heddle_version() {
  return HEDDLE_VERSION;
}

std::optional<double> stolen_share(double stolen_s, double workers, double factor_s) {
  const double all = workers * factor_s;
  return all > 0 ? std::optional(stolen_s / all) : std::nullopt;
}

json to_json(const Report& report) {
  json threads = json::array();
  for (const Report::Thread& thread : report.threads) threads.push_back(thread_to_json(thread));
  const Report::Seconds& seconds = report.seconds;
  return {{"status", status_name(report.status)},
          {"info", report.info},
          {"hint", report.hint},
          {"m", report.m},
          {"n", report.n},
          {"nrhs", report.nrhs},
          {"factorization", report.factorization},
          {"nodes", report.nodes},
          {"nodes_per_host", report.nodes_per_host},
          {"grid", json::array({report.grid.rows, report.grid.columns})},
          {"tile", nullable(report.tile)},
          {"strip", nullable(report.strip)},
          {"small", nullable(report.small)},
          {"hierarchy", report.hierarchy},
          {"placement", report.placement},
          {"verification", report.verification},
          {"inner", nullable(report.inner)},
          {"virtual", nullable(report.virtual_tiles)},
          {"tree", nullable(report.tree)},
          {"chosen", report.chosen},
          {"cpu_workers", report.cpu_workers},
          {"window", report.window},
          {"priorities", report.priorities},
          {"devices", report.devices},
          {"device_backend", report.device_backend},
          {"blas_kernels", report.blas_kernels},
          {"machine_file", nullable(report.machine_file)},
          {"version", report.version},
          {"reproducible", report.reproducible},
          {"seconds",
           {{"total", nullable(seconds.total)},
            {"start", nullable(seconds.start)},
            {"read", nullable(seconds.read)},
            {"prepare", nullable(seconds.prepare)},
            {"factor", nullable(seconds.factor)},
            {"overlap", nullable(seconds.overlap)},
            {"solve", nullable(seconds.solve)},
            {"verify", nullable(seconds.verify)},
            {"write", nullable(seconds.write)}}},
          {"stolen", nullable(report.stolen)},
          {"gflops", nullable(report.gflops)},
          {"gemm_gflops", nullable(report.gemm_gflops)},
          {"efficiency", nullable(report.efficiency)},
          {"residual", nullable(report.residual)},
          {"factorization_residual", nullable(report.factorization_residual)},
          {"solution_residual", nullable(report.solution_residual)},
          {"residual_norms", nullable(report.residual_norms)},
          {"orthogonality", nullable(report.orthogonality)},
          {"log_determinant", nullable(report.log_determinant)},
          {"tasks", report.tasks},
          {"messages", report.messages},
          {"bytes_sent", report.bytes_sent},
          {"copies", report.copies},
          {"bytes_copied", report.bytes_copied},
          {"evictions", report.evictions},
          {"tasks_lent", report.tasks_lent},
          {"peak_bytes",
           {{"host", nullable(report.peak_bytes.host)},
            {"device", nullable(report.peak_bytes.device)}}},
          {"device_memory", nullable(report.device_memory)},
          {"threads", std::move(threads)}};
}

Report report_from_json(const json& from) {
  Report report;
  try {
    read_problem(from, report);
    read_measurements(from, report);
  } catch (const json::exception& exception) {
    throw Error(ErrorCode::usage, fmt::format("not a report: {}", exception.what()));
  }
  return report;
}

std::string json_text(const json& document) {
  // Names from outside (paths, hosts) may hold any bytes; the report stays valid JSON.
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace heddle
