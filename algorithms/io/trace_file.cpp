#include "algorithms/io/trace_file.hpp"

#include <chrono>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "node-runtime/trace/node_file.hpp"
#include "node-runtime/trace/run_folder.hpp"

namespace heddle {
namespace {

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The name under which a file of the trace is written until it is complete.
std::string temporary_of(const std::string& file) {
  return fmt::format("{}.{}.heddle-part", file, ::getpid());
}

/// Node 0's process number, which tells this run's files from those of others beside them.
std::int64_t number_of_run(Node& node) {
  return static_cast<std::int64_t>(
      reduce(node, node.rank() == 0 ? ::getpid() : 0, Reduction::maximum));
}

}  // namespace

bool is_chrome_trace(const std::filesystem::path& path) {
  return path.extension() == ".json";
}

std::uint64_t write_run(Node& node, const std::filesystem::path& folder, const std::string& about,
                        const TemporaryFileGuard& guard) {
  const std::int64_t run = number_of_run(node);
  const auto begun_s = static_cast<std::int64_t>(
      reduce(node, node.rank() == 0 ? unix_seconds() : 0, Reduction::maximum));
  together(node, [&] {
    if (node.rank() == 0) trace::prepare_run_folder(folder, node.size());
  });
  node.barrier();  // the threads are idle from here on
  together(node, [&] {
    const std::string file = (folder / trace::node_file_name(NodeId{node.rank()})).string();
    const std::shared_ptr<void> half = guard ? guard(temporary_of(file)) : nullptr;
    // All nodes name the run, so that files of different ones are told apart.
    const std::string metadata = fmt::format(R"({{"run":"{}-{}","about":{}}})", begun_s, run,
                                             node.rank() == 0 ? about : "null");
    trace::write_node_file(file, node.recorder(),
                           {.clock_offsets = {node.clock_offset()}, .metadata = metadata});
  });
  return static_cast<std::uint64_t>(
      reduce(node, static_cast<double>(node.recorder().dropped()), Reduction::sum));
}

trace::ExportSummary write_trace(Node& node, const std::filesystem::path& path,
                                 const TemporaryFileGuard& guard) {
  const auto guarded = [&](const std::string& file) { return guard ? guard(file) : nullptr; };
  const std::int64_t run = number_of_run(node);
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
