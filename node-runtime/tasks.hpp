#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"

/// What programs say: the tiles that tasks access, the job that they make up, and how it ended.
namespace heddle {

class Program;
class TaskStream;
struct TilePart;

namespace protocol {

/// A matrix of the node. Numbers follow the order of creation, equal on all nodes.
using MatrixId = Index<struct MatrixTag, std::int32_t>;

/// A tile of a matrix: `index` counts tiles column by column.
struct TileId {
  MatrixId matrix;
  std::int32_t index = 0;
  /// Position in an array that has an element per tile of the matrix.
  [[nodiscard]] constexpr std::size_t position() const { return static_cast<std::size_t>(index); }
  friend constexpr auto operator<=>(const TileId&, const TileId&) = default;
};

/// Accesses per task at most.
inline constexpr std::size_t accesses_max = 8;

/// Names a version by counting the writes of the current job.
inline constexpr Version count_here{-1};

enum class AccessMode : std::uint8_t { read, write, read_write };

/// One access of a task to a tile: all that the protocol decides by.
///
/// `version` is the version that is read, or for `write` the one that is replaced, counted in
/// writes since the start of the job. A program that every node walks in full may leave it
/// `count_here`; a pruned program must state it for tiles of other nodes.
struct Access {
  TileId tile;
  Location home;
  AccessMode mode = AccessMode::read;
  Version version = count_here;
};

/// A node that reads a version of a tile which lives on another node.
struct Reader {
  NodeId node;
  std::int32_t priority = 0;  ///< of its first task that reads the version
  friend bool operator==(const Reader&, const Reader&) = default;
};

}  // namespace protocol

/// A tile as programs name it: what the protocol calls it and where it lives.
struct TileRef {
  protocol::TileId id;
  Location home;
};

/// How a task accesses a tile. `version` counts writes to the tile since the job began; a program
/// that every node walks in full leaves it out, a pruned one states it for tiles that live on other
/// nodes.
[[nodiscard]] inline protocol::Access read(TileRef tile, Version version = protocol::count_here) {
  return {tile.id, tile.home, protocol::AccessMode::read, version};
}
[[nodiscard]] inline protocol::Access write(TileRef tile, Version version = protocol::count_here) {
  return {tile.id, tile.home, protocol::AccessMode::write, version};
}
[[nodiscard]] inline protocol::Access read_write(TileRef tile,
                                                 Version version = protocol::count_here) {
  return {tile.id, tile.home, protocol::AccessMode::read_write, version};
}

/// The accesses of one task, the main output first: `{read_write(a), read(b)}`, or a span of them
/// where their number is not known when compiling. Lives as long as a call's argument.
class AccessList {
 public:
  template <class... Accesses>
  requires(sizeof...(Accesses) > 0 && sizeof...(Accesses) <= protocol::accesses_max &&
           (std::is_same_v<Accesses, protocol::Access> && ...))
      AccessList(const Accesses&... accesses)  // NOLINT(google-explicit-constructor)
      : all_(reinterpret_cast<const protocol::Access*>(own_.data()), sizeof...(Accesses)) {
    std::byte* next = own_.data();
    ((new (next) protocol::Access(accesses), next += sizeof accesses), ...);
  }
  AccessList(std::span<const protocol::Access> accesses)  // NOLINT(google-explicit-constructor)
      : all_(accesses) {}
  AccessList(const AccessList&) = delete;
  AccessList& operator=(const AccessList&) = delete;

  [[nodiscard]] std::span<const protocol::Access> all() const { return all_; }

 private:
  // Not written where a task has fewer. GCC 12 cannot keep a std::initializer_list over co_await.
  alignas(protocol::Access)
      std::array<std::byte, protocol::accesses_max * sizeof(protocol::Access)> own_;
  std::span<const protocol::Access> all_;
};

/// What `Node::submit` takes: a program and what it is about.
struct JobSpec {
  std::string name;                               ///< for progress and errors: "cholesky"
  std::function<Program(TaskStream&)> program;    ///< called twice and more, see TaskStream
  std::vector<protocol::MatrixId> matrices;       ///< all that it uses
  std::vector<protocol::MatrixId> temporaries;    ///< of these, the temporary ones
  std::vector<std::shared_ptr<void>> keep_alive;  ///< whatever must live as long as the job
  /// What other nodes need of this version of a tile, all of them together; nothing else travels,
  /// and the rest of the tile is undefined where it arrives. That holds for a tile's own home too
  /// when another node writes it (a minor output). Empty: whole tiles. Versions count writes since
  /// the job began. Must be pure, the same on all nodes, and not throw; any thread may call it.
  std::function<TilePart(protocol::TileId, Version)> part;
  /// The nodes that read this version of a tile, without the tile's home, in the order of their
  /// first reads in the program. Nothing for a version that no other node reads, or whose readers
  /// the program announces itself. Empty: it announces all of them. Must be pure, the same on all
  /// nodes, and not throw; any thread may call it.
  std::function<std::vector<protocol::Reader>(protocol::TileId, Version)> readers;
  /// Out of core, tiles are not fetched for tasks whose priority is lower by more than this than
  /// that of what is under way: fetching them early would drive out what is needed sooner.
  std::int32_t priority_span = std::numeric_limits<std::int32_t>::max();
  /// Rows and columns of the parts into which CPU workers divide a task, at most; they run the fine
  /// tasks on these parts together (000 section 3.2). 0: tasks run whole. Equal on all nodes, so
  /// that bits are.
  std::int64_t fine = 0;
};

/// How a job ended, the same on all nodes.
struct JobResult {
  enum class Status : std::uint8_t { done, cancelled, numerical_failure, failed };  ///< by weight
  Status status = Status::done;
  /// LAPACK's info of a numerical failure: the global index, from 1.
  std::int64_t info = 0;
  /// What the kernel left at its Kernel::failing_element; 0 where it has none.
  double pivot = 0;
  /// The text of the exception that failed the job, and the node that threw it.
  std::string error;
  ErrorCode code = ErrorCode::internal;  ///< of that exception
};

}  // namespace heddle
