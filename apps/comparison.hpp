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

/// A run as it is compared with others.
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
  std::vector<std::optional<double>> values;  ///< by run; nothing where it has none

  /// Of the figure of run i against the first one's: 0.1 is a tenth more. Nothing where one of both
  /// has none, or the first one's is 0.
  [[nodiscard]] std::optional<double> change(std::size_t i) const;
};

struct ComparedSection {
  std::string title;
  std::vector<ComparedFigure> figures;
};

/// Settings in which runs differ, in the order of their reports; "-" where one does not say.
struct ComparedSetting {
  std::string key;
  std::vector<std::string> values;  ///< by run
};
[[nodiscard]] std::vector<ComparedSetting> settings_that_differ(std::span<const ComparedRun> runs);

/// What the runs took, what bounded them, where their threads' time went, their kernels, messages,
/// copies and critical paths. Figures that are 0 in all runs are left out.
[[nodiscard]] std::vector<ComparedSection> compare(std::span<const ComparedRun> runs);

/// For a terminal: a column for each run, and behind each but the first one its change; shares have
/// theirs in points. Ends with a line break.
[[nodiscard]] std::string comparison_table(std::span<const ComparedRun> runs);

/// The same figures.
[[nodiscard]] nlohmann::json comparison_json(std::span<const ComparedRun> runs);
/// settings_that_differ().
[[nodiscard]] nlohmann::json settings_json(std::span<const ComparedRun> runs);

}  // namespace heddle
