#include "apps/simulation/fitted_times.hpp"

namespace heddle {
namespace {

/// By `part_of` a time: the seconds over what `usual_of` says that they would be at 1; 0 of
/// nothing.
template <typename PartOf, typename UsualOf>
std::vector<double> shares(std::size_t parts, const std::vector<GroupTime>& times,
                           const PartOf& part_of, const UsualOf& usual_of) {
  std::vector<double> took(parts, 0);
  std::vector<double> usual(parts, 0);
  for (const GroupTime& time : times) {
    took[part_of(time)] += time.seconds;
    usual[part_of(time)] += usual_of(time);
  }
  for (std::size_t part = 0; part < parts; ++part) {
    took[part] = usual[part] > 0 ? took[part] / usual[part] : 0;
  }
  return took;
}

}  // namespace

FittedTimes fit_times(std::size_t kinds, std::size_t groups, const std::vector<GroupTime>& times) {
  constexpr int sweeps = 8;
  FittedTimes fitted{{}, std::vector<double>(groups, 1)};
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    fitted.usual = shares(
        kinds, times, [](const GroupTime& time) { return time.kind; },
        [&](const GroupTime& time) { return fitted.paces[time.group] * time.count; });
    fitted.paces = shares(
        groups, times, [](const GroupTime& time) { return time.group; },
        [&](const GroupTime& time) { return fitted.usual[time.kind] * time.count; });
  }
  return fitted;
}

}  // namespace heddle
