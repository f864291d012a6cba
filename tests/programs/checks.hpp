#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/programs/recording.hpp"

/// Whether the walks of all nodes are parts of one sequential program: the one that a single node
/// walks. Each check returns what is wrong first, or an empty text.
namespace heddle::simulation {

/// What names a task alike on every grid: what it computes, from which versions of tiles that are
/// not temporary.
struct TaskName {
  std::string_view kernel;
  std::array<std::uint64_t, 4> parameters{};
  std::int64_t info_base = 0;
  std::vector<std::tuple<protocol::TileId, Version>> accesses;
  friend auto operator<=>(const TaskName&, const TaskName&) = default;
};

/// The order of the tasks on one node.
class SequentialOrder {
 public:
  /// `job` was recorded on one node.
  SequentialOrder(const RecordedJob& job, const MatrixTable& table);

  /// All nodes together insert each task once, and none besides.
  [[nodiscard]] std::string check_tasks(const RecordedJob& job, const MatrixTable& table) const;
  /// Each node's tasks stand in the order of the sequential program.
  [[nodiscard]] std::string check_order(const RecordedJob& job, const MatrixTable& table) const;
  /// JobSpec::readers names the nodes that read a version of a tile elsewhere, in the order of
  /// their first tasks that do, with the priorities of these. If the program announces its
  /// temporaries itself, it may leave them out.
  [[nodiscard]] std::string check_readers(const RecordedJob& job, const MatrixTable& table,
                                          bool announces_temporaries) const;

 private:
  [[nodiscard]] std::size_t position(const Call& call, const MatrixTable& table) const;

  std::map<TaskName, std::size_t> positions_;
  std::string defect_;  ///< two tasks with one name
};

/// Every version that a node reads of a tile elsewhere is announced to it by the tile's node, or
/// published there with this reader, and no other is announced.
[[nodiscard]] std::string check_announcements(const RecordedJob& job);

/// What a node releases of a tile elsewhere, or of a temporary one, it uses no more. (The release
/// of another tile on its own node only gives up copies of it.)
[[nodiscard]] std::string check_releases(const RecordedJob& job, const MatrixTable& table);

}  // namespace heddle::simulation
