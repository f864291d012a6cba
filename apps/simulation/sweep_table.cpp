#include "apps/simulation/sweep_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/chart/line_chart.hpp"
#include "apps/report.hpp"
#include "apps/simulation/machine_hosts.hpp"
#include "base/units.hpp"
#include "config/words.hpp"

namespace heddle {
namespace {

constexpr std::size_t columns_max = 80;
constexpr std::size_t bar_min = 4;  ///< less tells nothing

/// Whether the terminal shows UTF-8: the first of these that is set decides, as in the C library.
bool shows_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (value == nullptr || *value == 0) continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

/// A bar of `share` of `cells` characters, to an eighth of one where the terminal can.
std::string bar(double share, std::size_t cells, bool utf8) {
  const auto eighths = static_cast<std::size_t>(
      std::lround(std::clamp(share, 0.0, 1.0) * 8 * static_cast<double>(cells)));
  std::string text;
  if (!utf8) return std::string((eighths + 4) / 8, '#');
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "\u2588";
  if (eighths % 8 > 0) {
    text += "\xE2\x96";  // U+2589, seven eighths, to U+258F, one
    text += static_cast<char>(0x90 - static_cast<int>(eighths % 8));
  }
  return text;
}

/// In lines of at most `most` characters, broken at spaces where there are any.
std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
  std::vector<std::string> lines;
  while (text.size() > most) {
    const std::size_t space = text.rfind(' ', most);
    const bool is_found = space != std::string_view::npos && space > 0;
    const std::size_t end = is_found ? space : most;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(is_found ? end + 1 : end);
  }
  lines.emplace_back(text);
  return lines;
}

/// The number of the case with the highest rate.
std::size_t best_of(const std::vector<SweptCase>& cases) {
  const auto rate = [](const SweptCase& one) {
    return one.prediction ? one.prediction->gflops() : -1.0;
  };
  return static_cast<std::size_t>(std::ranges::max_element(cases, {}, rate) - cases.begin());
}

const char* largest_bound(const PredictionBounds& bounds) {
  if (bounds.critical_path_s.value_or(0) >= bounds.seconds()) return "path";
  return bounds.node_s > 1.001 * bounds.area_s ? "node" : "area";
}

/// What all cases have in common, or nothing.
template <class Get>
std::optional<std::string> common(const std::vector<SweptCase>& cases, const Get& get) {
  std::optional<std::string> value;
  for (const SweptCase& one : cases) {
    if (!one.prediction) continue;
    const std::string own = get(one);
    if (value && *value != own) return std::nullopt;
    value = own;
  }
  return value;
}

class Table {
 public:
  Table(const Sweep& sweep, const std::vector<SweptCase>& cases)
      : sweep_(sweep), cases_(cases), best_(best_of(cases)), utf8_(shows_utf8()) {
    for (std::size_t key = 0; key < sweep.keys.size(); ++key) {
      widths_.push_back(sweep.label(key).size());
      for (const SweptCase& one : cases) {
        widths_.back() = std::max(widths_.back(), one.values[key].size());
      }
    }
    has_devices_ = std::ranges::any_of(cases, [](const SweptCase& one) {
      return one.prediction && one.what.machine.machine.devices > 0;
    });
    has_repeats_ = std::ranges::any_of(
        cases, [](const SweptCase& one) { return one.prediction && one.prediction->repeats; });
    const std::size_t figures =
        figure_columns + (has_devices_ ? 8 : 0) + (has_repeats_ ? spread_columns : 0);
    const auto left = [&] {
      std::size_t sum = 1;
      for (const std::size_t one : widths_) sum += one + gap_;
      return sum;
    };
    if (left() + figures > columns_max) gap_ = 1;
    left_ = left();
    const std::size_t room = columns_max - std::min(columns_max, left_ + figures + 1);
    bar_ = room < bar_min ? 0 : room;
  }

  [[nodiscard]] std::string text() const {
    std::string text = head();
    text += std::string(1, ' ') + labels();
    text += fmt::format("{:>11}", "time");
    if (has_repeats_) text += fmt::format("{:>{}}", "5 to 95 %", spread_columns);
    text += fmt::format("{:>9}{:>8}", "GFLOP/s", "busy");
    if (has_devices_) text += fmt::format("{:>8}", "devices");
    text += "  of bound\n";
    for (std::size_t i = 0; i < cases_.size(); ++i) text += line(i);
    return text + foot();
  }

 private:
  static constexpr std::size_t figure_columns = 11 + 9 + 8 + 14;
  static constexpr std::size_t spread_columns = 18;

  /// "-1.2 .. +2.3 %" of the median.
  [[nodiscard]] static std::string spread_of(const Prediction& prediction) {
    if (!prediction.repeats) return "-";
    const auto change = [&](double seconds) {
      return 100 * (seconds / prediction.result.seconds - 1);
    };
    return fmt::format("{:+.1f} .. {:+.1f} %", change(prediction.repeats->low_s),
                       change(prediction.repeats->high_s));
  }

  [[nodiscard]] static std::string row(const char* label, const std::string& text) {
    return fmt::format("  {:<18}{}\n", label, text);
  }
  [[nodiscard]] std::string head() const {
    const SweptCase& best = cases_[best_];
    const auto machine =
        common(cases_, [](const SweptCase& c) { return c.what.machine.machine.name; });
    std::string text =
        fmt::format("heddle {}: {} cases simulated on {}\n{}\n", heddle_version(), cases_.size(),
                    machine.value_or("several machines"), std::string(columns_max, '-'));
    const auto problem = common(cases_, problem_text);
    if (problem) text += row("problem", *problem);
    const auto nodes = common(cases_, nodes_text);
    if (nodes) text += row("nodes", *nodes);
    const auto hosts =
        common(cases_, [](const SweptCase& c) { return hosts_text(c.what.machine.machine); });
    if (hosts && !hosts->empty()) text += row("hosts", *hosts);
    const auto note = common(cases_, [](const SweptCase& c) { return c.what.machine.note; });
    if (note && !note->empty()) text += row("devices", *note);
    const auto cut = common(cases_, [](const SweptCase& c) { return c.prediction->problem.cut; });
    if (cut) text += row("tiles", *cut);
    const auto runtime = common(cases_, [](const SweptCase& c) { return runtime_name(c.what); });
    if (runtime) text += row("runtime", *runtime);
    text += row("kernels", best.prediction->kernels) + "\n";
    return text;
  }
  [[nodiscard]] static std::string problem_text(const SweptCase& one) {
    return problem_name(one.what);
  }
  [[nodiscard]] static std::string nodes_text(const SweptCase& one) {
    return nodes_name(one.what, *one.prediction);
  }
  [[nodiscard]] std::string labels() const {
    std::string text;
    for (std::size_t key = 0; key < sweep_.keys.size(); ++key) {
      text += fmt::format("{:>{}}", sweep_.label(key), gap_ + widths_[key]);
    }
    return text;
  }

  [[nodiscard]] std::string line(std::size_t number) const {
    const SweptCase& one = cases_[number];
    std::string text(1, number == best_ ? '*' : ' ');
    for (std::size_t key = 0; key < widths_.size(); ++key) {
      text += fmt::format("{:>{}}", one.values[key], gap_ + widths_[key]);
    }
    if (!one.prediction) {
      const std::size_t room = columns_max - std::min(left_ + 4, columns_max / 2);
      const std::vector<std::string> lines = wrapped(one.refused, room);
      text += "    " + lines.front() + "\n";
      for (std::size_t i = 1; i < lines.size(); ++i) {
        text += std::string(left_ + 4, ' ') + lines[i] + "\n";
      }
      return text;
    }
    const Prediction& is = *one.prediction;
    text += fmt::format("{:>11}", format_seconds(is.result.seconds));
    if (has_repeats_) text += fmt::format("{:>{}}", spread_of(is), spread_columns);
    text += fmt::format("{:>9.1f}{:>6.1f} %", is.gflops(), 100 * is.busy);
    if (has_devices_) text += fmt::format("{:>6.1f} %", 100 * is.busy_devices);
    text += fmt::format("  {:>5.1f} % {:<4}", 100 * is.share_of_bound(), largest_bound(is.bounds));
    const double share = is.gflops() / cases_[best_].prediction->gflops();
    if (bar_ > 0) text += " " + bar(share, bar_, utf8_);
    return text + "\n";
  }

  [[nodiscard]] std::string foot() const {
    std::string seeds;
    if (has_repeats_)
      seeds = "\nTimes are medians of several seeds, with where 90 % of them lie.\n";
    return seeds +
           (bar_ > 0
                ? "\n* highest rate; bars are rates. Of bound: how near the time comes to the\n"
                : "\n* highest rate. Of bound: how near the time comes to the\n") +
           std::string(
               "  largest of area (all places busy all the time), node (those of the fullest\n"
               "  node) and path (tasks that wait for each other).\n");
  }

  const Sweep& sweep_;
  const std::vector<SweptCase>& cases_;
  std::size_t best_;
  bool utf8_;
  bool has_devices_ = false;
  bool has_repeats_ = false;
  std::vector<std::size_t> widths_;  ///< of the keys' columns
  std::size_t gap_ = 2;              ///< before each of them
  std::size_t left_ = 0;             ///< of them all, and the mark's
  std::size_t bar_ = 0;
};

}  // namespace

void fill_in(const Sweep& sweep, std::vector<SweptCase>& cases) {
  for (std::size_t key = 0; key < sweep.keys.size(); ++key) {
    for (SweptCase& one : cases) {
      std::string& value = one.values[key];
      if (!one.prediction || !value.empty()) continue;
      if (sweep.keys[key] == "runtime.window") value = fmt::format("{}", one.what.window());
      if (sweep.keys[key] == "runtime.placement") value = name_of(one.what.placement());
    }
  }
}

std::string sweep_table(const Sweep& sweep, const std::vector<SweptCase>& cases) {
  return Table(sweep, cases).text();
}

nlohmann::json to_json(const Sweep& sweep, const std::vector<SweptCase>& cases) {
  nlohmann::json all{{"simulated", true},
                     {"sweep", sweep.keys},
                     {"best", best_of(cases)},
                     {"cases", nlohmann::json::array()}};
  for (const SweptCase& one : cases) {
    nlohmann::json entry{{"refused", nullptr}};
    if (one.prediction) {
      entry = to_json(one.what, *one.prediction);
      entry["refused"] = nullptr;
    } else {
      entry["refused"] = one.refused;
    }
    for (std::size_t key = 0; key < sweep.keys.size(); ++key) {
      entry["set"][sweep.keys[key]] = one.values[key];
    }
    all["cases"].push_back(std::move(entry));
  }
  return all;
}

std::string sweep_picture(const Sweep& sweep, const std::vector<SweptCase>& cases) {
  LineChart chart;
  chart.y_label = "GFLOP/s";
  chart.x_label = sweep.keys.front();
  const auto problem = common(cases, [](const SweptCase& one) { return problem_name(one.what); });
  const auto machine =
      common(cases, [](const SweptCase& one) { return one.what.machine.machine.name; });
  chart.title = fmt::format("{} on {}", problem.value_or("Factorizations"),
                            machine.value_or("several machines"));
  const auto number_of = [](std::vector<std::string>& names, const std::string& name) {
    const auto found = std::ranges::find(names, name);
    const auto number = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    return number;
  };
  std::vector<std::string> names;
  for (const SweptCase& one : cases) {
    std::vector<std::string> others;
    for (std::size_t key = 1; key < sweep.keys.size(); ++key) {
      others.push_back(fmt::format("{} {}", sweep.label(key), one.values[key]));
    }
    const std::size_t s = number_of(names, fmt::format("{}", fmt::join(others, ", ")));
    const std::size_t x = number_of(chart.x_names, one.values.front());
    chart.series.resize(names.size());
    chart.series[s].name = names[s];
    if (chart.series[s].values.size() <= x) chart.series[s].values.resize(x + 1);
    if (one.prediction) chart.series[s].values[x] = one.prediction->gflops();
  }
  return to_svg(chart);
}

}  // namespace heddle
