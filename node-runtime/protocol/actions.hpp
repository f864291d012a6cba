#pragma once

#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

struct Task;
struct Job;
struct Landing;
struct Send;

/// Copy a tile between two places of the node; report with Protocol::copy_finished.
struct CopyAction {
  enum class Kind : std::uint8_t {
    replica,  ///< for a reader at another place
    sink,     ///< a minor output to its tile's home place
  };
  Kind kind = Kind::replica;
  std::int32_t priority = 0;
  JobId job;
  TileId tile;
  Version number;
  PlaceId from_place;
  PlaceId to_place;
  BlockRef from;
  BlockRef to;
  void* record = nullptr;  ///< the protocol's ticket
};

/// A block is ready for data from node `from`: a version that lives there, at the place of its
/// first reader here, or a minor output, at its tile's place. Prepare to receive into it and tell
/// node `from`; report with Protocol::data_arrived.
struct GrantAction {
  NodeId from;
  JobId job;
  TileId tile;
  Version number;
  PlaceId place;
  BlockRef block;
  bool asked = false;  ///< an AskAction preceded it
  Landing* record = nullptr;
};

/// No block is free yet for a version that lives on node `from`: tell that node, which offers the
/// version (OfferAction) when it is present. The later grant may overtake this message.
struct AskAction {
  NodeId from;
  JobId job;
  TileId tile;
  Version number;
};

/// A version that node `to` asked for is present but not granted: tell that node.
struct OfferAction {
  NodeId to;
  JobId job;
  TileId tile;
  Version number;
};

/// Send a version, from the place where it lives or was made, to a node that granted it; report
/// with Protocol::send_finished.
struct SendAction {
  NodeId to;
  std::uint32_t tag = 0;  ///< from the receiver's grant
  std::int32_t priority = 0;
  JobId job;
  TileId tile;
  Version number;
  PlaceId place;
  BlockRef block;
  bool empty = false;  ///< the job is cancelled: send a message without data that says so
  Send* record = nullptr;
  /// Set: the version is still on its way into the block (Protocol::Options::passes_on_arriving).
  /// What has come of it may leave; the message ends after that one, and is empty if that one is.
  /// Report data_arrived() before send_finished(); until then this record stays.
  Landing* behind = nullptr;
  bool passed_on = false;  ///< this node is not the version's home, but has received it itself
};

/// Output of every event. The caller carries the actions out in any order, at any later time, and
/// clears the lists.
struct Actions {
  std::vector<Task*>
      ready;  ///< all inputs and blocks are present: run it, then Protocol::task_finished
  std::vector<CopyAction> copies;
  std::vector<AskAction> asks;
  std::vector<GrantAction> grants;
  std::vector<OfferAction> offers;
  std::vector<SendAction> sends;
  std::vector<BlockRef> freed;  ///< blocks whose content is not needed any more
  std::vector<Job*> drained;    ///< jobs with nothing left on this node

  void clear() {
    ready.clear();
    copies.clear();
    asks.clear();
    grants.clear();
    offers.clear();
    sends.clear();
    freed.clear();
    drained.clear();
  }
};

}  // namespace heddle::protocol
