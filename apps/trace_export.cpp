#include "apps/trace_export.hpp"

#include <fmt/format.h>

#include "node-runtime/trace/chrome_export.hpp"
#include "node-runtime/trace/csv_export.hpp"
#include "replay/run.hpp"

namespace heddle {

int export_trace(const TraceExportOptions& options) {
  const replay::SalvagedRun run = replay::salvage_run(options.run);
  for (const std::string& damage : run.damages) fmt::print("not whole: {}\n", damage);
  if (options.format == TraceFormat::csv) {
    const std::uint64_t lines = trace::write_csv(run.traces, options.output);
    fmt::print("{}: {} records\n", options.output, lines);
  } else {
    const trace::ExportSummary summary = trace::merge_to_chrome(run.traces, options.output);
    fmt::print("{}: {} slices, {} arrows\n", options.output, summary.slices, summary.arrows);
  }
  return run.damages.empty() ? 0 : 1;
}

}  // namespace heddle
