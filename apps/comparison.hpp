#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/run_facts.hpp"
#include "replay/analysis.hpp"

namespace heddle {

/// A run to compare.
struct ComparedRun {
  std::string name;
  RunFacts facts;
  replay::Analysis analysis;
};

/// A figure of several runs.
struct ComparedFigure {
  enum class Unit : std::uint8_t { seconds, microseconds, bytes, number, percent, gflops };
  std::string what;
  Unit unit = Unit::number;
  std::vector<std::optional<double>> values;  ///< by run; empty if unknown

  /// Relative change of run i from the first run: 0.1 is 10 % more. Empty if one is unknown, or the
  /// first is 0.
  [[nodiscard]] std::optional<double> change(std::size_t i) const;
};

struct ComparedSection {
  std::string title;
  std::vector<ComparedFigure> figures;
};

/// A setting in which runs differ, in the order of their reports; "-" if unknown.
struct ComparedSetting {
  std::string key;
  std::vector<std::string> values;  ///< by run
};
[[nodiscard]] std::vector<ComparedSetting> settings_that_differ(std::span<const ComparedRun> runs);

/// Times, limits, use of threads, kernels, messages, copies and critical paths of the runs. Omits
/// figures that are 0 in all runs.
[[nodiscard]] std::vector<ComparedSection> compare(std::span<const ComparedRun> runs);

/// For a terminal: a column per run, followed by its change from the first; shares change in
/// points. Ends with a line break.
[[nodiscard]] std::string comparison_table(std::span<const ComparedRun> runs);

/// The same figures.
[[nodiscard]] nlohmann::json comparison_json(std::span<const ComparedRun> runs);
/// settings_that_differ().
[[nodiscard]] nlohmann::json settings_json(std::span<const ComparedRun> runs);

}  // namespace heddle
