#pragma once

#include <cstddef>
#include <vector>

namespace heddle {

/// What tasks of one kind took in one group (a worker's, or a turn's), all together.
struct GroupTime {
  std::size_t kind = 0;
  std::size_t group = 0;
  double seconds = 0;
  double count = 0;
};

/// A task takes what is usual for its kind times its group's pace, as nearly as both can be told:
/// the sums of each kind and of each group are as they were. Groups that are not alike in what runs
/// in them would otherwise have their kinds' differences in their paces, and kinds their groups'.
struct FittedTimes {
  std::vector<double> usual;  ///< by kind, seconds at a pace of 1; 0: none ran
  std::vector<double> paces;  ///< by group; 0: nothing ran
};
[[nodiscard]] FittedTimes fit_times(std::size_t kinds, std::size_t groups,
                                    const std::vector<GroupTime>& times);

}  // namespace heddle
