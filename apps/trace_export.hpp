#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/results.hpp"

namespace heddle {

enum class TraceFormat : std::uint8_t { perfetto, chrome, csv, paje };

/// The format of that name on the command line.
[[nodiscard]] std::optional<TraceFormat> trace_format(std::string_view name);
/// "perfetto, chrome, csv, paje"
[[nodiscard]] std::string trace_format_names();

struct TraceExportOptions {
  std::string run;  ///< a folder, or the file of a single node
  TraceFormat format = TraceFormat::chrome;
  std::string output;
};

/// `heddle export`. Returns the exit status: 0, or 1 if part of the trace could not be read. Throws
/// Error.
int export_trace(const TraceExportOptions& options, Results& results);

}  // namespace heddle
