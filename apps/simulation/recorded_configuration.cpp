#include "apps/simulation/recorded_configuration.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "apps/simulation/configuration_keys.hpp"
#include "base/error.hpp"
#include "config/options.hpp"

namespace heddle {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const replay::RunTrace& run, const std::string& why) {
  throw Error(ErrorCode::usage,
              fmt::format("'{}' does not say what was factorized, and how: {}", run.source, why));
}

/// Of a matrix that is generated, as one from a file cannot be read again; its values change no
/// time.
json size_of(const std::string& factorization, const json& about) {
  const auto m = about.at("m").get<std::int64_t>();
  const auto n = about.at("n").get<std::int64_t>();
  json matrix{{"generate", factorization == "qr" ? "random" : "spd"}, {"n", n}};
  if (m != n) matrix["m"] = m;
  return matrix;
}

}  // namespace

RecordedConfiguration::RecordedConfiguration(const replay::RunTrace& run)
    : source_(run.source), about_(json::parse(run.about)), given_(json::parse(run.configuration)) {
  if (!about_.is_object()) {
    const bool has_first = std::ranges::binary_search(run.nodes, NodeId{0});
    refuse(run, has_first ? "node 0 has written nothing of it; only what heddle solve has recorded "
                            "can be replayed"
                          : "the trace of node 0, which would, is not there");
  }
  if (!about_.contains("resolved")) {
    refuse(run,
           "it was recorded by an older heddle, whose traces do not keep the whole configuration "
           "of a run; record the run once more");
  }
  try {
    resolved_ = about_.at("resolved");
    const auto factorization = resolved_.at("problem").at("factorization").get<std::string>();
    resolved_["problem"] = {{"factorization", factorization},
                            {"matrix", size_of(factorization, about_)}};
    resolved_["machine"] = "auto";
  } catch (const json::exception& error) {
    refuse(run, error.what());
  }
}

bool RecordedConfiguration::was_open(std::string_view key) const {
  return value_of(given_, key) == "auto";
}

Config RecordedConfiguration::with(const std::vector<std::string>& overrides,
                                   std::span<const std::string_view> anew) const {
  json all = resolved_;
  for (const std::string_view key : anew) {
    if (was_open(key)) all[json::json_pointer(config::json_path(key))] = "auto";
  }
  return Config::from_text(all.dump(), source_, overrides);
}

}  // namespace heddle
