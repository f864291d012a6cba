#pragma once

#include <cstdint>

#include "replay/run.hpp"

namespace heddle::replay {

/// The largest amount that one of a run's nodes, or hosts, sent.
struct LargestSender {
  double bytes = 0;
  double bytes_from_homes = 0;  ///< if the homes had sent all versions to all readers themselves
};

/// Versions that readers passed on to further readers, and what their homes saved by that
/// (decision 044).
struct ReaderFigures {
  std::int64_t passed_on = 0;  ///< messages that did not come from the version's home
  double bytes = 0;            ///< of these messages
  LargestSender node;
  /// Only what went to other hosts; all 0 if the traces do not name the hosts, or on one host.
  LargestSender host;
};

/// Of a job's messages. What readers passed on is known where the trace of the sender is there.
[[nodiscard]] ReaderFigures reader_figures(const RunTrace& run, std::int32_t job);

}  // namespace heddle::replay
