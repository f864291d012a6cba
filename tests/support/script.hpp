#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/protocol/protocol.hpp"
#include "tests/support/program.hpp"

namespace heddle::simulation {

using Lines = std::vector<std::string>;

/// A few nodes of the protocol, driven event by event from a test, with everything as text: tiles
/// and tasks have names, what the protocol wants done is a list of lines, and a line is carried out
/// by naming it. A version is written "tile.number", a place of the same node by its number.
///
///   run T                   task T is ready
///   copy a.0 0>1            copy to a reader at another place
///   sink a.1 0>1            copy of a minor output to its tile
///   grant a.0 from 1        ready to receive, on the host
///   grant a.0 at 2 from 1   the same at another place
///   ask a.0 of 1            no block to receive it, and
///   offer a.0 to 0          what answers it (Options::asks)
///   send a.0 to 1           granted, and data present; carrying it out delivers it and leaves:
///   sent a.0 to 1           the sender's completion
///   send a.0 at 2 to 1      the same from another place than the host, and
///   sent a.0 at 2 to 1
///
/// Whatever the protocol wants done at a place must be done with blocks of that place.
class Script {
 public:
  struct Options {
    std::int32_t nodes = 1;
    std::int32_t places = 1;
    std::int32_t window = 100;
    std::int32_t blocks = 100;  ///< of each pool of the job
    std::int32_t minimum = 0;
    std::int32_t spare_count = 0;
    bool asks = false;  ///< asks are told; without them nothing is offered, and all goes on
  };

  explicit Script(Options options) : options_(options) {}
  ~Script();
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  /// Names a tile; all tiles come before the first task.
  protocol::TileId tile(const std::string& name, std::int32_t node, std::int32_t place);
  protocol::TileId temporary(const std::string& name, std::int32_t node, std::int32_t place);
  [[nodiscard]] protocol::Access read(protocol::TileId tile) const { return writer_.read(tile); }
  [[nodiscard]] protocol::Access write(protocol::TileId tile) const { return writer_.write(tile); }
  [[nodiscard]] protocol::Access read_write(protocol::TileId tile) const {
    return writer_.read_write(tile);
  }

  /// APPEND at every node, or at one.
  void append(const std::string& task, const std::vector<protocol::Access>& accesses);
  void append_at(std::int32_t node, const std::string& task,
                 const std::vector<protocol::Access>& accesses);
  void announce(std::int32_t node, protocol::TileId tile, std::int32_t reader);
  void release(protocol::TileId tile);
  /// Ends the program of the latest job.
  void end();
  /// Begins another job at every node; what follows belongs to it.
  void begin_job();
  void cancel(std::int32_t node) { protocol(node).cancel(job(node)); }

  /// The instances that the job's unfinished items have left at a node, in program order, each as
  /// its kind, the tile, and for what is not at the node's host "at" its place.
  [[nodiscard]] Lines instances(std::int32_t node);
  /// What the protocol of a node wants done, sorted.
  [[nodiscard]] Lines pending(std::int32_t node);
  /// The same in the order in which it was asked for.
  [[nodiscard]] Lines pending_in_order(std::int32_t node);
  /// Carries out a pending line. Fails the test if there is no such line.
  void carry_out(std::int32_t node, const std::string& line);
  /// Carries out everything, at all nodes, until nothing is pending.
  void carry_out_all();
  /// Blocks freed at a node since the last call, sorted: "job 0" for a block of the job's pool at
  /// place 0, "own 1" for one of the matrix.
  [[nodiscard]] Lines freed(std::int32_t node);
  /// The block that a pending grant receives into, or a pending send leaves from.
  [[nodiscard]] protocol::BlockRef block(std::int32_t node, const std::string& line);
  /// Where a block belongs to, in the words of freed().
  [[nodiscard]] static std::string pool_of(protocol::BlockRef block);
  /// A named task that is ready.
  [[nodiscard]] const protocol::Task& ready(std::int32_t node, const std::string& task);

  [[nodiscard]] protocol::Protocol& protocol(std::int32_t node);
  [[nodiscard]] protocol::Job& job(std::int32_t node);
  [[nodiscard]] std::string blockage(std::int32_t node) { return protocol(node).blockage(); }
  /// True once all jobs are drained at every node.
  [[nodiscard]] bool drained();

 private:
  struct Pending {
    std::string line;
    std::function<void()> carry_out;
    const protocol::Task* task = nullptr;
    protocol::BlockRef block = {};  ///< of a message
  };
  struct Node {
    std::unique_ptr<protocol::Protocol> protocol;
    protocol::Job* job = nullptr;  ///< the latest
    std::size_t begun = 0;
    std::size_t drained = 0;
    protocol::Actions actions;
    std::vector<Pending> pending;
    std::vector<protocol::GrantAction> landings;  ///< by tag
    Lines freed;
  };

  void start();
  Node& at(std::int32_t node);
  void collect(std::int32_t node);
  void collect_copies(std::int32_t node);
  void collect_messages(std::int32_t node);
  [[nodiscard]] std::string name(protocol::TileId tile) const { return tile_names_.at(tile); }
  [[nodiscard]] std::string name(protocol::TileId tile, Version number) const;
  [[nodiscard]] std::string instance(protocol::InstanceKind kind, protocol::TileId tile) const;
  void add_instances(const protocol::Task& task, Lines& lines) const;

  Options options_;
  ProgramWriter writer_;
  std::map<protocol::TileId, std::string> tile_names_;
  std::vector<std::string> task_names_;
  std::vector<Node> nodes_;
};

}  // namespace heddle::simulation
