#include "algorithms/io/trace_file.hpp"

#include <chrono>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "algorithms/io/agreement.hpp"
#include "config/effective.hpp"
#include "node-runtime/machine/host.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/node_internals.hpp"
#include "node-runtime/trace/atomic_file.hpp"
#include "node-runtime/trace/chrome_export.hpp"
#include "node-runtime/trace/node_stream.hpp"
#include "node-runtime/trace/recorder.hpp"
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

bool is_chrome_trace(const std::string& path) {
  return std::filesystem::path(path).extension() == ".json";
}

/// The trace until it is finished or abandoned.
struct TraceFile::State {
  State(Node& traced, const std::string& to, TemporaryFileGuard temporary_file_guard)
      : node(traced),
        path(to),
        guard(std::move(temporary_file_guard)),
        is_chrome(is_chrome_trace(to)),
        run(name_of_run(traced)) {}

  void begin(const std::string& about);
  trace::ExportSummary merge();
  void remove_mine() noexcept;
  [[nodiscard]] std::string metadata(const std::string& about) const;
  [[nodiscard]] std::filesystem::path file_of(std::int32_t rank) const;

  Node& node;
  const std::filesystem::path path;
  const TemporaryFileGuard guard;
  const bool is_chrome;
  const std::string run;  ///< the same on all nodes, so that files of different runs are told apart
  std::shared_ptr<void> guarded;
  std::optional<trace::NodeStream> stream;
};

TraceFile::TraceFile(Node& node, const std::string& path, const std::string& about,
                     TemporaryFileGuard guard)
    : state_(std::make_unique<State>(node, path, std::move(guard))) {
  together(node, [&] {
    if (node.rank() == 0 && !state_->is_chrome) trace::prepare_run_folder(state_->path);
  });
  try {
    together(node, [&] { state_->begin(about); });
  } catch (...) {
    abandon();  // the others may be lost, and no destructor will run
    throw;
  }
}

TraceFile::~TraceFile() {
  abandon();
}

TraceFile::Summary TraceFile::finish(const std::string& about) {
  State& s = *state_;
  const NodeInternals internals(s.node);
  const trace::ClockOffset now = internals.compare_clocks();
  s.node.barrier();  // the threads are idle from here on
  together(s.node, [&] {
    s.stream->finish({.clock_offsets = {now}, .metadata = s.metadata(about)});
    s.stream.reset();
  });
  const trace::ExportSummary merged = s.is_chrome ? s.merge() : trace::ExportSummary{};
  const auto dropped = static_cast<double>(internals.recorder().dropped());
  return {merged.slices, merged.arrows,
          static_cast<std::uint64_t>(reduce(s.node, dropped, Reduction::sum))};
}

void TraceFile::abandon() noexcept {
  state_->stream.reset();
  if (state_->is_chrome) state_->remove_mine();
}

/// This node's file.
void TraceFile::State::begin(const std::string& about) {
  const std::filesystem::path mine = file_of(node.rank());
  if (is_chrome && guard) guarded = guard(mine.string());
  const NodeInternals internals(node);
  stream.emplace(
      mine, internals.recorder(),
      trace::RunInfo{.clock_offsets = {internals.clock_offset()}, .metadata = metadata(about)},
      [internals] { internals.bind_beside_workers(); });
}

trace::ExportSummary TraceFile::State::merge() {
  trace::ExportSummary summary;
  together(node, [&] {
    if (node.rank() != 0) return;
    std::vector<std::filesystem::path> files;
    files.reserve(static_cast<std::size_t>(node.size()));
    for (std::int32_t r = 0; r < node.size(); ++r) files.push_back(file_of(r));
    const std::string half = trace::AtomicFile::temporary_path_of(path.string());
    const std::shared_ptr<void> half_guarded = guard ? guard(half) : nullptr;
    summary = trace::merge_to_chrome(files, path);
  });
  remove_mine();
  return summary;
}

void TraceFile::State::remove_mine() noexcept {
  std::error_code ignored;  // it is not there when it could not be written
  std::filesystem::remove(file_of(node.rank()), ignored);
}

std::filesystem::path TraceFile::State::file_of(std::int32_t rank) const {
  if (!is_chrome) return path / trace::node_file_name(NodeId{rank});
  return fmt::format("{}.node-{}.{}.heddle-part", path.string(), rank, run);
}

std::string TraceFile::State::metadata(const std::string& about) const {
  return fmt::format(R"({{"run":"{}","about":{},"configuration":{},"node":{}}})", run,
                     node.rank() == 0 ? about : "null", to_json(node.config()).dump(),
                     describe(node.facts()).dump());
}

}  // namespace heddle
