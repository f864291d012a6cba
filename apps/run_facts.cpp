#include "apps/run_facts.hpp"

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "apps/report.hpp"
#include "config/options.hpp"

namespace heddle {
namespace {

using nlohmann::json;

const json* field(const json& from, const char* name) {
  if (!from.is_object()) return nullptr;
  const auto found = from.find(name);
  return found == from.end() ? nullptr : &*found;
}

std::optional<double> number(const json& from, const char* name) {
  const json* const value = field(from, name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

template <class Integer>
std::optional<Integer> integer(const json& from, const char* name) {
  const json* const value = field(from, name);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<Integer>();
}

std::optional<std::string> text(const json& from, const char* name) {
  const json* const value = field(from, name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

/// Facts of the machine, then the settings in the order of the option table.
std::vector<std::pair<std::string, std::string>> settings_of(const json& about) {
  std::vector<std::pair<std::string, std::string>> settings;
  const auto add = [&](std::string_view key, const json* value) {
    if (value == nullptr || value->is_null()) return;
    settings.emplace_back(key, value->is_string() ? value->get<std::string>() : value->dump());
  };
  for (const char* key : {"factorization", "m", "n", "nodes", "nodes_per_host", "blas_kernels",
                          "machine", "version"}) {
    add(key, field(about, key));
  }
  const json* const resolved = field(about, "resolved");
  for (const config::Option& option : config::options()) {
    const bool counts = option.path.starts_with("layout.") || option.path.starts_with("runtime.");
    if (!counts || option.is_group()) continue;
    const std::string key(option.path.substr(option.path.find('.') + 1));
    const json::json_pointer at(config::json_path(option.path));
    const bool is_there = resolved != nullptr && resolved->contains(at);
    // In older runs some are in the report.
    add(key, is_there ? &resolved->at(at) : field(about, key.c_str()));
  }
  return settings;
}

}  // namespace

std::optional<double> RunFacts::products_s() const {
  if (!factor_s || !gflops || !gemm_gflops || *gemm_gflops <= 0) return std::nullopt;
  return *factor_s * *gflops / *gemm_gflops;
}

std::string RunFacts::why_no_products() const {
  if (products_s()) return {};
  if (!is_there) return "the trace has no report of its run";
  if (is_simulated) return "a simulated run measures none";
  if (!gflops) {
    if (is_of_job && status && *status != "ok") return fmt::format("the run ended as {}", *status);
    return job ? fmt::format("the run's report has no rate of this job; it is about job {}", *job)
               : "the run's report has no rate";
  }
  return "the run has not measured it, which would have taken longer than the factorization";
}

RunFacts facts_of(const replay::RunTrace& run, std::int32_t job) {
  const json about = json::parse(run.about, nullptr, false);
  RunFacts facts;
  facts.is_there = about.is_object();
  const json* const simulated = field(about, "simulated");
  facts.is_simulated = simulated != nullptr && simulated->is_boolean() && simulated->get<bool>();
  facts.job = integer<std::int32_t>(about, "job");
  facts.status = text(about, "status");
  facts.factorization = text(about, "factorization");
  facts.m = integer<std::int64_t>(about, "m");
  facts.n = integer<std::int64_t>(about, "n");
  facts.tile = integer<std::int64_t>(about, "tile");
  facts.settings = settings_of(about);
  facts.is_of_job = !facts.job || *facts.job == job;
  if (!facts.is_of_job) return facts;
  if (const json* const seconds = field(about, "seconds")) {
    facts.factor_s = number(*seconds, "factor");
  }
  facts.gflops = number(about, "gflops");
  facts.gemm_gflops = number(about, "gemm_gflops");
  const auto stolen = number(about, "stolen");
  const auto nodes = number(about, "nodes");
  const auto workers = number(about, "cpu_workers");
  if (stolen && nodes && workers && facts.factor_s) {
    facts.stolen_share = stolen_share(*stolen, *nodes * *workers, *facts.factor_s);
  }
  return facts;
}

}  // namespace heddle
