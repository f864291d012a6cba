#include "algorithms/io/trace_file.hpp"

#include <fmt/format.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "node-runtime/trace/node_file.hpp"

namespace heddle {
namespace {

/// The name under which a file of the trace is written until it is complete.
std::string temporary_of(const std::string& file) {
  return fmt::format("{}.{}.heddle-part", file, ::getpid());
}

}  // namespace

trace::ExportSummary write_trace(Node& node, const std::filesystem::path& path,
                                 const TemporaryFileGuard& guard) {
  const auto guarded = [&](const std::string& file) { return guard ? guard(file) : nullptr; };
  // Node 0's process number tells this run's files from those of others beside them.
  const auto run = static_cast<std::int64_t>(
      reduce(node, node.rank() == 0 ? ::getpid() : 0, Reduction::maximum));
  const auto file_of = [&](std::int32_t rank) {
    return fmt::format("{}.node-{}.{}.heddle-part", path.string(), rank, run);
  };
  const std::string mine = file_of(node.rank());
  const std::shared_ptr<void> mine_guarded = guarded(mine);
  node.barrier();  // the threads are idle from here on
  together(node, [&] {
    const std::shared_ptr<void> half = guarded(temporary_of(mine));
    trace::write_node_file(mine, node.recorder(), {.clock_offsets = {node.clock_offset()}});
  });
  trace::ExportSummary summary;
  together(node, [&] {
    if (node.rank() != 0) return;
    std::vector<std::filesystem::path> files;
    files.reserve(static_cast<std::size_t>(node.size()));
    for (std::int32_t r = 0; r < node.size(); ++r) files.emplace_back(file_of(r));
    const std::shared_ptr<void> half = guarded(temporary_of(path.string()));
    summary = trace::merge_to_chrome(files, path);
  });
  std::error_code ignored;  // it is not there when it could not be written
  std::filesystem::remove(mine, ignored);
  return summary;
}

}  // namespace heddle
