#include <array>
#include <fmt/core.h>
#include <string>

#include "base/units.hpp"
#include "node-runtime/transport/p2p/report.hpp"

namespace heddle::p2p {

std::string_view name_of(FragmentReport::Kind kind) {
  constexpr std::array<std::string_view, 6> names{"pack",    "send",   "fill",
                                                  "receive", "unpack", "fetch"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string explain(const MessageReport& report) {
  std::string text =
      fmt::format("message of {} with tag {} from node {} to node {}: {}",
                  format_bytes(static_cast<std::uint64_t>(report.bytes)), report.tag,
                  report.source.value(), report.receiver.value(), name_of(report.path));
  if (!report.choice) {
    text += fmt::format(", with its note; measured {:.1f} us", report.measured_us);
    return text;
  }
  text += fmt::format(", in {} {}; predicted {:.1f} us, measured {:.1f} us", report.pieces,
                      report.pieces == 1 ? "piece" : "pieces", report.choice->predicted_us(),
                      report.measured_us);
  if (!report.choice->note.empty()) text += fmt::format("\n  {}", report.choice->note);
  for (const PathEstimate& estimate : report.choice->estimates) {
    if (estimate.path == report.path) continue;
    if (estimate.lacks.empty()) {
      text += fmt::format("\n  not {:<8} predicted {:.1f} us", name_of(estimate.path),
                          estimate.predicted_us);
    } else {
      text += fmt::format("\n  not {:<8} {}", name_of(estimate.path), estimate.lacks);
    }
  }
  return text;
}

}  // namespace heddle::p2p
