#pragma once

#include <string>

namespace heddle {

enum class TraceFormat { chrome, csv };

struct TraceExportOptions {
  std::string run;  ///< a folder, or the file of a single node
  TraceFormat format = TraceFormat::chrome;
  std::string output;
};

/// `heddle trace export`. The exit status: 0, or 1 when part of the trace could not be read. Throws
/// Error.
int export_trace(const TraceExportOptions& options);

}  // namespace heddle
