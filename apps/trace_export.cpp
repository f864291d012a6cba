#include "apps/trace_export.hpp"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/file_uses.hpp"
#include "apps/terminal.hpp"
#include "node-runtime/trace/chrome_export.hpp"
#include "node-runtime/trace/csv_export.hpp"
#include "replay/export/paje_export.hpp"
#include "replay/export/perfetto_export.hpp"
#include "replay/run.hpp"

namespace heddle {
namespace {

/// By TraceFormat.
constexpr std::array<std::string_view, 4> names{"perfetto", "chrome", "csv", "paje"};

/// Describes the written file.
std::string write(const replay::SalvagedRun& run, TraceFormat format, const std::string& output) {
  switch (format) {
    case TraceFormat::chrome: {
      const auto written = trace::merge_to_chrome(run.traces, output);
      return fmt::format("{} slices, {} arrows", written.slices, written.arrows);
    }
    case TraceFormat::csv:
      return fmt::format("{} records", trace::write_csv(run.traces, output));
    case TraceFormat::perfetto:
    case TraceFormat::paje: {
      const bool is_paje = format == TraceFormat::paje;
      const replay::RunExport written = is_paje ? replay::export_to_paje(run.traces, output)
                                                : replay::export_to_perfetto(run.traces, output);
      return fmt::format("{} slices, {} dependencies{}, {} messages", written.slices,
                         written.dependencies, is_paje ? " between nodes" : "", written.messages);
    }
  }
  return {};
}

}  // namespace

std::optional<TraceFormat> trace_format(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names.at(i) == name) return static_cast<TraceFormat>(i);
  }
  return std::nullopt;
}

std::string trace_format_names() {
  return fmt::format("{}", fmt::join(names, ", "));
}

int export_trace(const TraceExportOptions& options, Results& results) {
  FileUses files;
  files.reads_run("the run", options.run);
  files.writes("--output", options.output);
  files.check_distinct();
  files.check_writable(results.janitor());
  const replay::SalvagedRun run = replay::salvage_run(options.run);
  for (const std::string& damage : run.damages) print(fmt::format("not whole: {}\n", damage));
  const std::string what = write(run, options.format, results.stage(options.output));
  results.commit();
  print(fmt::format("{}: {}\n", options.output, what));
  return run.damages.empty() ? 0 : 1;
}

}  // namespace heddle
