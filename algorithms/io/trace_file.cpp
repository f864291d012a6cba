#include "algorithms/io/trace_file.hpp"

#include <chrono>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "node-runtime/machine/host.hpp"
#include "node-runtime/trace/atomic_file.hpp"
#include "node-runtime/trace/run_folder.hpp"

namespace heddle {
namespace {

/// When node 0's process began to record, and its number.
std::string name_of_run(Node& node) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return gather_texts(node, fmt::format("{}-{}", seconds, ::getpid())).front();
}

nlohmann::json describe(const NodeFacts& facts) {
  return {{"host", describe_host().name},
          {"cpu", facts.cpu_model},
          {"memory", facts.memory_available_bytes},
          {"nodes_on_host", facts.nodes_on_host},
          {"cpu_workers", facts.cpu_workers},
          {"oversubscribed", facts.oversubscribed},
          {"host_cores", facts.host_cores},
          {"devices", facts.devices},
          {"device_backend", facts.device_backend},
          {"device_name", facts.device_name},
          {"device_streams", facts.device_streams},
          {"device_memory", facts.device_memory_bytes},
          {"window", facts.window},
          {"blas", facts.blas},
          {"kernels", facts.blas_kernels},
          {"machine_file", facts.machine_file}};
}

}  // namespace

bool is_chrome_trace(const std::filesystem::path& path) {
  return path.extension() == ".json";
}

TraceFile::TraceFile(Node& node, std::filesystem::path path, const std::string& about,
                     TemporaryFileGuard guard)
    : node_(node),
      path_(std::move(path)),
      guard_(std::move(guard)),
      is_chrome_(is_chrome_trace(path_)),
      run_(name_of_run(node)) {
  together(node_, [&] {
    if (node_.rank() == 0 && !is_chrome_) trace::prepare_run_folder(path_);
  });
  try {
    together(node_, [&] {
      const std::filesystem::path mine = file_of(node_.rank());
      if (is_chrome_ && guard_) guarded_ = guard_(mine.string());
      stream_.emplace(
          mine, node_.recorder(),
          trace::RunInfo{.clock_offsets = {node_.clock_offset()}, .metadata = metadata(about)},
          [this] { node_.bind_beside_workers(); });
    });
  } catch (...) {
    abandon();  // the others may be lost, and no destructor will run
    throw;
  }
}

TraceFile::~TraceFile() {
  abandon();
}

trace::ExportSummary TraceFile::finish(const std::string& about) {
  const trace::ClockOffset now = node_.compare_clocks();
  node_.barrier();  // the threads are idle from here on
  together(node_, [&] {
    stream_->finish({.clock_offsets = {now}, .metadata = metadata(about)});
    stream_.reset();
  });
  trace::ExportSummary summary;
  if (is_chrome_) summary = merge();
  summary.records_dropped = static_cast<std::uint64_t>(
      reduce(node_, static_cast<double>(node_.recorder().dropped()), Reduction::sum));
  return summary;
}

void TraceFile::abandon() noexcept {
  stream_.reset();
  if (is_chrome_) remove_mine();
}

trace::ExportSummary TraceFile::merge() {
  trace::ExportSummary summary;
  together(node_, [&] {
    if (node_.rank() != 0) return;
    std::vector<std::filesystem::path> files;
    files.reserve(static_cast<std::size_t>(node_.size()));
    for (std::int32_t r = 0; r < node_.size(); ++r) files.push_back(file_of(r));
    const std::string half = trace::AtomicFile::temporary_path_of(path_.string());
    const std::shared_ptr<void> guarded = guard_ ? guard_(half) : nullptr;
    summary = trace::merge_to_chrome(files, path_);
  });
  remove_mine();
  return summary;
}

void TraceFile::remove_mine() noexcept {
  std::error_code ignored;  // it is not there when it could not be written
  std::filesystem::remove(file_of(node_.rank()), ignored);
}

std::filesystem::path TraceFile::file_of(std::int32_t rank) const {
  if (!is_chrome_) return path_ / trace::node_file_name(NodeId{rank});
  return fmt::format("{}.node-{}.{}.heddle-part", path_.string(), rank, run_);
}

std::string TraceFile::metadata(const std::string& about) const {
  return fmt::format(R"({{"run":"{}","about":{},"configuration":{},"node":{}}})", run_,
                     node_.rank() == 0 ? about : "null", to_json(node_.config()).dump(),
                     describe(node_.facts()).dump());
}

}  // namespace heddle
