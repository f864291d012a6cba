#pragma once

#include <optional>
#include <string>
#include <vector>

namespace heddle {

struct ChartSeries {
  std::string name;
  std::vector<std::optional<double>> values;  ///< by place on the x axis; nothing: a gap
};

/// Values of some series over a common axis.
struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> x_names;  ///< numbers are placed by value, by logarithm where they are
                                     ///< far apart; anything else evenly, without lines between
  std::vector<ChartSeries> series;
};

/// A picture of its own, for browsers and documents. Values are 0 or more.
[[nodiscard]] std::string to_svg(const LineChart& chart);

}  // namespace heddle
