#pragma once

#include <string>
#include <vector>

#include "apps/collective_cases.hpp"
#include "apps/run.hpp"

namespace heddle {

/// One operation of one size, and what was measured: of each turn the median, in microseconds.
struct MeasuredCollective : CollectiveCase {
  explicit MeasuredCollective(CollectiveCase what) : CollectiveCase(std::move(what)) {}

  std::int64_t count = 0;  ///< doubles of a block

  std::vector<double> heddle_us;
  std::vector<double> heddle_p99_us;
  std::vector<double> in_place_us;  ///< empty: there is no such form
  std::vector<double> mpi_us;
  std::string algorithm;
  double predicted_us = 0;
  std::vector<std::string> others;
  double ranks_us = 0;  ///< predicted in each order; 0: it is no reduction
  double places_us = 0;
  bool is_right = true;
};

[[nodiscard]] std::string collectives_table(const std::vector<MeasuredCollective>& cases, int ranks,
                                            bool explains);

/// As the file `path`. `place`: of the memory.
void write_collectives(const std::vector<MeasuredCollective>& cases, int ranks,
                       const std::string& place, bool is_on_stream, const std::string& path,
                       Run& run);

}  // namespace heddle
