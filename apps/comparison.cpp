#include "apps/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.hpp"

namespace heddle {
namespace {

using nlohmann::json;
using replay::Analysis;
using Unit = ComparedFigure::Unit;

constexpr std::size_t name_width_max = 22;

/// Collects the figures of a section.
class SectionMaker {
 public:
  SectionMaker(std::span<const ComparedRun> runs, std::string title)
      : runs_(runs), section_{std::move(title), {}} {}

  /// `value(run)`: a number or an optional one.
  template <class Value>
  void add(std::string what, Unit unit, const Value& value) {
    ComparedFigure figure{std::move(what), unit, {}};
    for (const ComparedRun& run : runs_) {
      const std::optional<double> one = value(run);
      figure.values.push_back(one);
    }
    const bool is_any = std::ranges::any_of(figure.values, [](const std::optional<double>& one) {
      return one.has_value() && *one != 0;
    });
    if (is_any) section_.figures.push_back(std::move(figure));
  }
  [[nodiscard]] ComparedSection take() { return std::move(section_); }

 private:
  std::span<const ComparedRun> runs_;
  ComparedSection section_;
};

double share(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

std::optional<double> percent_of_products(const RunFacts& facts) {
  if (!facts.gflops || !facts.gemm_gflops) return std::nullopt;
  return share(*facts.gflops, *facts.gemm_gflops);
}

ComparedSection times(std::span<const ComparedRun> runs) {
  SectionMaker section(runs, "run");
  section.add("time", Unit::seconds, [](const ComparedRun& run) { return run.analysis.seconds(); });
  section.add("tasks", Unit::number,
              [](const ComparedRun& run) { return static_cast<double>(run.analysis.tasks); });
  section.add("dependencies", Unit::number, [](const ComparedRun& run) {
    return static_cast<double>(run.analysis.dependencies);
  });
  section.add("rate", Unit::gflops, [](const ComparedRun& run) { return run.facts.gflops; });
  section.add("of the rate of products", Unit::percent,
              [](const ComparedRun& run) { return percent_of_products(run.facts); });
  return section.take();
}

ComparedSection bounds(std::span<const ComparedRun> runs) {
  SectionMaker section(runs, "bounds");
  const std::array<std::pair<const char*, double replay::Bounds::*>, 4> all{
      {{"area", &replay::Bounds::area_s},
       {"placed", &replay::Bounds::placed_s},
       {"critical path", &replay::Bounds::critical_path_s},
       {"mixed", &replay::Bounds::mixed_s}}};
  for (const auto& [what, member] : all) {
    const auto bound = member;  // a lambda cannot have the binding
    section.add(what, Unit::seconds,
                [&](const ComparedRun& run) { return run.analysis.bounds.*bound; });
  }
  section.add("products", Unit::seconds,
              [](const ComparedRun& run) { return run.facts.products_s(); });
  for (const auto& [what, member] : all) {
    const auto bound = member;  // a lambda cannot have the binding
    section.add(fmt::format("{}, of the time", what), Unit::percent, [&](const ComparedRun& run) {
      return share(run.analysis.bounds.*bound, run.analysis.seconds());
    });
  }
  return section.take();
}

/// Fraction of the time of all threads that run tasks.
template <class Ns>
double share_of_threads(const Analysis& analysis, const Ns& ns) {
  double part = 0;
  double all = 0;
  for (const replay::ThreadTime& thread : analysis.threads) {
    part += static_cast<double>(ns(thread));
    all += static_cast<double>(thread.busy_ns + thread.idle());
  }
  return share(part, all);
}

ComparedSection threads(std::span<const ComparedRun> runs) {
  SectionMaker section(runs, "threads, of their time");
  section.add("busy", Unit::percent,
              [](const ComparedRun& run) { return 100 * run.analysis.busy_share(); });
  for (std::size_t i = 0; i < replay::idle_cause_count; ++i) {
    section.add(replay::name(static_cast<replay::IdleCause>(i)), Unit::percent,
                [i](const ComparedRun& run) {
                  return share_of_threads(run.analysis, [i](const replay::ThreadTime& thread) {
                    return thread.idle_ns.at(i);
                  });
                });
  }
  return section.take();
}

ComparedSection kernels(std::span<const ComparedRun> runs) {
  SectionMaker section(runs, "kernels");
  using Key = std::pair<std::string, replay::Role>;
  std::vector<Key> keys;  // longest first, by the first run that has them
  for (const ComparedRun& run : runs) {
    for (const auto& kernel : run.analysis.kernels) {
      const Key key(kernel.kernel, kernel.role);
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  for (const Key& key : keys) {
    const auto figure = [&](const auto& value) {
      return [&key, value](const ComparedRun& run) -> std::optional<double> {
        for (const auto& kernel : run.analysis.kernels) {
          if (Key(kernel.kernel, kernel.role) == key) return static_cast<double>(value(kernel));
        }
        return std::nullopt;
      };
    };
    const std::string where =
        key.second == replay::Role::worker ? "" : fmt::format(" on a {}", replay::name(key.second));
    using Figures = replay::KernelFigures;
    section.add(fmt::format("{}{}", key.first, where), Unit::number,
                figure([](const Figures& kernel) { return kernel.count; }));
    section.add("  median", Unit::microseconds,
                figure([](const Figures& kernel) { return kernel.median_us; }));
    section.add("  in all", Unit::seconds,
                figure([](const Figures& kernel) { return kernel.total_s; }));
  }
  return section.take();
}

ComparedSection transfers(std::span<const ComparedRun> runs) {
  SectionMaker section(runs, "transfers");
  const auto add = [&](const std::string& what, replay::TransferFigures Analysis::*figures) {
    section.add(what, Unit::number, [&](const ComparedRun& run) {
      return static_cast<double>((run.analysis.*figures).count);
    });
    section.add("  bytes", Unit::bytes,
                [&](const ComparedRun& run) { return (run.analysis.*figures).bytes; });
    section.add("  in all", Unit::seconds,
                [&](const ComparedRun& run) { return (run.analysis.*figures).seconds; });
    section.add("  hidden", Unit::percent, [&](const ComparedRun& run) -> std::optional<double> {
      const replay::TransferFigures& one = run.analysis.*figures;
      return one.count > 0 ? std::optional<double>(100 * one.hidden) : std::nullopt;
    });
  };
  add("messages", &Analysis::messages);
  add("copies", &Analysis::copies);
  return section.take();
}

ComparedSection path(std::span<const ComparedRun> runs, std::string title,
                     std::vector<replay::PathPart> Analysis::*parts) {
  SectionMaker section(runs, std::move(title));
  std::vector<std::string> names;
  for (const ComparedRun& run : runs) {
    for (const auto& part : run.analysis.*parts) {
      if (std::ranges::find(names, part.what) == names.end()) names.push_back(part.what);
    }
  }
  for (const std::string& name : names) {
    section.add(name, Unit::seconds, [&](const ComparedRun& run) -> std::optional<double> {
      const auto found = std::ranges::find(run.analysis.*parts, name, &replay::PathPart::what);
      if (found == (run.analysis.*parts).end()) return std::nullopt;
      return found->seconds;
    });
  }
  return section.take();
}

std::string shown(Unit unit, const std::optional<double>& value) {
  if (!value) return "-";
  switch (unit) {
    case Unit::seconds:
      return format_seconds(*value);
    case Unit::microseconds:
      return fmt::format("{:.1f} us", *value);
    case Unit::bytes:
      return format_bytes(static_cast<std::uint64_t>(*value));
    case Unit::number:
      return fmt::format("{:.0f}", *value);
    case Unit::percent:
      return fmt::format("{:.1f} %", *value);
    case Unit::gflops:
      return fmt::format("{:.1f} GFLOP/s", *value);
  }
  return {};
}

/// Rounds to tenths and avoids -0.
double rounded(double value) {
  return std::round(10 * value) / 10 + 0.0;
}

std::string shown_change(const ComparedFigure& figure, std::size_t i) {
  if (figure.unit == Unit::percent) {
    if (!figure.values[i] || !figure.values[0]) return "";
    return fmt::format("{:+.1f} pt", rounded(*figure.values[i] - *figure.values[0]));
  }
  const auto change = figure.change(i);
  if (!change) return "";
  if (*change >= 9) return fmt::format("x {:.0f}", 1 + *change);
  return fmt::format("{:+.1f} %", rounded(100 * *change));
}

const char* name(Unit unit) {
  static constexpr std::array<const char*, 6> names{"seconds", "microseconds", "bytes",
                                                    "number",  "percent",      "gflops"};
  return names.at(static_cast<std::size_t>(unit));
}

/// Keeps the end of a long name, which distinguishes better.
std::string cut(const std::string& name) {
  if (name.size() <= name_width_max) return name;
  return ".." + name.substr(name.size() - name_width_max + 2);
}

}  // namespace

std::optional<double> ComparedFigure::change(std::size_t i) const {
  if (!values[i] || !values[0] || *values[0] == 0) return std::nullopt;
  return *values[i] / *values[0] - 1;
}

std::vector<ComparedSection> compare(std::span<const ComparedRun> runs) {
  std::vector<ComparedSection> sections{
      times(runs),
      bounds(runs),
      threads(runs),
      kernels(runs),
      transfers(runs),
      path(runs, "longest chain of tasks that wait for each other", &Analysis::critical_path),
      path(runs, "what led to the last task", &Analysis::chain)};
  std::erase_if(sections, [](const ComparedSection& section) { return section.figures.empty(); });
  return sections;
}

std::vector<ComparedSetting> settings_that_differ(std::span<const ComparedRun> runs) {
  std::vector<ComparedSetting> all;
  for (const ComparedRun& run : runs) {
    for (const auto& [key, value] : run.facts.settings) {
      if (std::ranges::find(all, key, &ComparedSetting::key) == all.end()) all.push_back({key, {}});
    }
  }
  for (ComparedSetting& setting : all) {
    for (const ComparedRun& run : runs) {
      const auto found = std::ranges::find(run.facts.settings, setting.key,
                                           [](const auto& one) { return one.first; });
      setting.values.push_back(found == run.facts.settings.end() ? "-" : found->second);
    }
  }
  std::erase_if(all, [](const ComparedSetting& setting) {
    return std::ranges::count(setting.values, setting.values.front()) == std::ssize(setting.values);
  });
  return all;
}

std::string comparison_table(std::span<const ComparedRun> runs) {
  constexpr int what_width = 30;
  constexpr int value_width = 14;
  constexpr int change_width = 11;
  std::string out = fmt::format("\n{:<{}}", "", what_width);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const int width = i == 0 ? value_width : value_width + change_width;
    out += fmt::format(" {:>{}}", cut(runs[i].name), std::max<int>(width, 0));
  }
  out += '\n';
  const std::vector<ComparedSetting> settings = settings_that_differ(runs);
  if (!settings.empty()) out += "settings that differ\n";
  for (const ComparedSetting& setting : settings) {
    out += fmt::format("  {:<{}}", setting.key, what_width - 2);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      out += fmt::format(" {:>{}}", cut(setting.values[i]), value_width);
      if (i > 0 && i + 1 < runs.size()) out += fmt::format("{:{}}", "", change_width);
    }
    out += '\n';
  }
  for (const ComparedSection& section : compare(runs)) {
    out += section.title + '\n';
    for (const ComparedFigure& figure : section.figures) {
      out += fmt::format("  {:<{}}", figure.what, what_width - 2);
      for (std::size_t i = 0; i < runs.size(); ++i) {
        out += fmt::format(" {:>{}}", shown(figure.unit, figure.values[i]), value_width);
        if (i > 0) out += fmt::format("{:>{}}", shown_change(figure, i), change_width);
      }
      out += '\n';
    }
  }
  return out;
}

json settings_json(std::span<const ComparedRun> runs) {
  json all = json::array();
  for (const ComparedSetting& setting : settings_that_differ(runs)) {
    all.push_back({{"key", setting.key}, {"values", setting.values}});
  }
  return all;
}

json comparison_json(std::span<const ComparedRun> runs) {
  json all = json::array();
  const auto nullable = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? json(*value) : json();
  };
  std::string kernel;
  for (const ComparedSection& section : compare(runs)) {
    std::string group;
    for (const ComparedFigure& figure : section.figures) {
      // Indented figures belong to the figure above.
      const bool is_part = figure.what.starts_with("  ");
      if (!is_part) group = figure.what;
      json row{{"section", section.title},
               {"what", is_part ? group + "," + figure.what.substr(1) : figure.what},
               {"unit", name(figure.unit)}};
      for (std::size_t i = 0; i < runs.size(); ++i) {
        row["values"].push_back(nullable(figure.values[i]));
        row["changes"].push_back(nullable(figure.change(i)));
      }
      all.push_back(std::move(row));
    }
  }
  return all;
}

}  // namespace heddle
