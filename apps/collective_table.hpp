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
  std::vector<double> limit_us;  ///< of bus_bytes() by CopyLimit; empty: there is none
  std::string algorithm;
  double predicted_us = 0;
  std::vector<std::string> others;
  double ranks_us = 0;  ///< predicted in each order; 0: it is no reduction
  double places_us = 0;
  bool is_right = true;
};

[[nodiscard]] std::string collectives_table(const std::vector<MeasuredCollective>& cases, int ranks,
                                            bool explains);

/// What all rows of a report have in common.
struct CollectivesSetting {
  int ranks = 0;
  std::string place;     ///< of the memory
  std::string datatype;  ///< of block_kind_names
  bool is_on_stream = false;
};

/// As the file `path`.
void write_collectives(const std::vector<MeasuredCollective>& cases,
                       const CollectivesSetting& setting, const std::string& path, Run& run);

}  // namespace heddle
