#include "apps/chart/line_chart.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <string_view>
#include <system_error>

namespace heddle {
namespace {

constexpr double left = 72;
constexpr double top = 64;
constexpr double plot_width = 520;
constexpr double plot_height = 340;
constexpr double legend_line = 18;
/// Told apart by people who see few colours, too (Okabe and Ito).
constexpr std::array<const char*, 8> colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                             "#e69f00", "#56b4e9", "#000000", "#7f7f7f"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view more = {}) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, escaped(text));
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value > 0)) return std::nullopt;
  return value;
}

/// Where the values of the x axis are, between 0 and 1.
struct Places {
  std::vector<double> at;
  bool is_scale = true;  ///< what lies between two of them means something
};

Places places_of(const std::vector<std::string>& names) {
  std::vector<double> values;
  for (const std::string& name : names) {
    if (const auto value = number(name)) values.push_back(*value);
  }
  Places places;
  places.is_scale = values.size() == names.size();
  if (!places.is_scale) {
    values.clear();
    for (std::size_t i = 0; i < names.size(); ++i) values.push_back(static_cast<double>(i));
  }
  auto [least, most] = std::ranges::minmax(values);
  if (places.is_scale && most > 8 * least) {
    for (double& value : values) value = std::log(value);
    least = std::log(least);
    most = std::log(most);
  }
  for (const double value : values) {
    places.at.push_back(most > least ? 0.04 + 0.92 * (value - least) / (most - least) : 0.5);
  }
  return places;
}

/// 1, 2 or 5 times a power of ten, such that some four to eight of them reach `most`.
double tick_step(double most) {
  const double rough = most / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= rough) return step * power;
  }
  return 10 * power;
}

class Drawing {
 public:
  explicit Drawing(const LineChart& chart) : chart_(chart), places_(places_of(chart.x_names)) {
    double most = 0;
    for (const ChartSeries& series : chart.series) {
      for (const auto& value : series.values) most = std::max(most, value.value_or(0));
    }
    step_ = tick_step(most > 0 ? most : 1);
    most_ = step_ * std::max(1.0, std::ceil(most / step_));
  }

  [[nodiscard]] std::string text() const {
    const double legend = top + legend_line * static_cast<double>(chart_.series.size());
    const double height = std::max(top + plot_height + 64, legend + 16);
    std::size_t longest = 0;
    for (const ChartSeries& one : chart_.series) longest = std::max(longest, one.name.size());
    const double width = left + plot_width + 56 + 6.8 * static_cast<double>(longest);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" "
        "fill=\"#333\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width, height);
    svg += text_at(left, 28, "start", chart_.title, " font-size=\"15\"");
    svg += axes();
    for (std::size_t s = 0; s < chart_.series.size(); ++s) svg += series(s);
    return svg + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(std::size_t i) const { return left + plot_width * places_.at[i]; }
  [[nodiscard]] double y(double value) const { return top + plot_height * (1 - value / most_); }
  [[nodiscard]] static const char* colour(std::size_t s) { return colours[s % colours.size()]; }
  /// After all colours lines are dashed.
  [[nodiscard]] static const char* dashes(std::size_t s) {
    return s < colours.size() ? "" : " stroke-dasharray=\"6 3\"";
  }

  [[nodiscard]] std::string axes() const {
    std::string svg;
    for (int i = 0; step_ * i <= most_ * (1 + 1e-9); ++i) {
      const double value = step_ * i;
      svg += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\"/>\n", left, y(value),
                         left + plot_width, i == 0 ? "#333" : "#e4e4e4");
      svg += text_at(left - 8, y(value) + 4, "end", fmt::format("{:.6g}", value));
    }
    double free_from = 0;  // names that would cover each other are left out
    std::vector<std::size_t> order(chart_.x_names.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return x(i); });
    for (const std::size_t i : order) {
      const double half = 3.6 * static_cast<double>(chart_.x_names[i].size());
      svg +=
          fmt::format("<path d=\"M{:.1f} {:.1f}v5\" stroke=\"#333\"/>\n", x(i), top + plot_height);
      if (x(i) - half < free_from) continue;
      free_from = x(i) + half + 6;
      svg += text_at(x(i), top + plot_height + 20, "middle", chart_.x_names[i]);
    }
    svg += text_at(left + plot_width / 2, top + plot_height + 44, "middle", chart_.x_label);
    return svg + text_at(left, top - 12, "middle", chart_.y_label);
  }

  [[nodiscard]] std::string series(std::size_t s) const {
    const ChartSeries& one = chart_.series[s];
    std::vector<std::size_t> order(one.values.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return x(i); });
    std::string path;
    std::string marks;
    bool follows = false;
    for (const std::size_t i : order) {
      const auto& value = one.values[i];
      if (value) {
        path += fmt::format("{}{:.1f} {:.1f}", follows ? "L" : "M", x(i), y(*value));
        marks += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{} {}: {:.5g}</title>"
            "</circle>\n",
            x(i), y(*value), colour(s), escaped(one.name), escaped(chart_.x_names[i]), *value);
      }
      follows = value.has_value();
    }
    std::string svg;
    if (places_.is_scale) {
      svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n",
                         path, colour(s), dashes(s));
    }
    svg += marks;
    if (one.name.empty()) return svg;
    const double at = top + legend_line * static_cast<double>(s);
    const double from = left + plot_width + 16;
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h20\" stroke=\"{}\" stroke-width=\"3\"{}/>\n", from,
                       at, colour(s), dashes(s));
    return svg + text_at(from + 26, at + 4, "start", one.name);
  }

  const LineChart& chart_;
  Places places_;
  double step_ = 1;
  double most_ = 1;
};

}  // namespace

std::string to_svg(const LineChart& chart) {
  return Drawing(chart).text();
}

}  // namespace heddle
