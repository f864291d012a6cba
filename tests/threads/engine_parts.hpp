#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/protocol/protocol.hpp"
#include "node-runtime/threads/job_table.hpp"

namespace heddle::testing {

inline constexpr Kernel nothing{.name = "nothing"};

/// One node's protocol with one matrix of tiles on the host, and jobs on it, without threads.
class LoneProtocol {
 public:
  static constexpr std::int32_t tiles = 8;

  explicit LoneProtocol(NodeId node = NodeId{0}) : protocol({node, 1}) {
    protocol::MatrixOptions options;
    options.tile_count = tiles;
    options.pools = {0};
    matrix = protocol.add_matrix(options);
  }
  LoneProtocol(const LoneProtocol&) = delete;
  LoneProtocol& operator=(const LoneProtocol&) = delete;
  ~LoneProtocol() { protocol.abandon(); }

  /// A job that has begun.
  std::shared_ptr<JobRecord> begin(const std::string& name, std::int32_t window = 1000) {
    auto job = std::make_shared<JobRecord>(nullptr);
    job->name = name;
    job->spec.name = name;
    job->spec.matrices = {matrix};
    job->handle =
        &protocol.begin_job({.window = window, .pools = {{1, 0, 0}}, .readers = {}, .route = {}});
    job->handle->context = job.get();
    job->id = job->handle->id;
    return job;
  }

  [[nodiscard]] protocol::Access access(std::int32_t tile, protocol::AccessMode mode,
                                        std::int32_t node = 0) const {
    return {{matrix, tile}, {NodeId{node}, host_place}, mode, protocol::count_here};
  }
  /// A task that writes a tile, and waits for the writers before it.
  void append(JobRecord& job, const Kernel& kernel, std::int32_t tile, std::int32_t priority = 0) {
    const std::vector accesses{access(tile, protocol::AccessMode::read_write)};
    protocol.append(*job.handle, work_of(kernel, {}), priority, accesses, actions);
  }
  /// The tasks that have become ready since the last call.
  std::vector<protocol::Task*> take_ready() {
    auto ready = std::exchange(actions.ready, {});
    actions.clear();
    return {ready.begin(), ready.end()};
  }

  protocol::Protocol protocol;
  protocol::MatrixId matrix;
  protocol::Actions actions;
};

}  // namespace heddle::testing
