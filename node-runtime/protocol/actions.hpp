#pragma once

#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle::protocol {

struct Task;
struct Copy;
struct Job;
struct Landing;
struct Send;
struct SlotHolder;
struct Sink;

/// Copy a tile between two places of the node; report with Protocol::copy_finished.
struct CopyAction {
  enum class Kind : std::uint8_t {
    replica,  ///< a reader at another place
    sink,     ///< a minor output to the place where its tile lives
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

/// A block is ready for what comes from another node: of a version that lives there, at the place
/// of its first reader here; of a minor output, its tile's own. Prepare to receive into it, tell
/// node `from` so; report with Protocol::data_arrived.
struct GrantAction {
  NodeId from;
  JobId job;
  TileId tile;
  Version number;
  PlaceId place;
  BlockRef block;
  std::uint64_t order = 0;  ///< of the first reader; smaller is more urgent
  bool asked = false;       ///< there was an AskAction before
  Landing* record = nullptr;
};

/// There is no block yet for a version that lives on node `from`: tell that node so, which offers
/// the version (OfferAction) once it is at hand. May be overtaken by its grant.
struct AskAction {
  NodeId from;
  JobId job;
  TileId tile;
  Version number;
};

/// A version that node `to` has asked for is at hand, and not granted: tell that node so.
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
  std::uint32_t tag = 0;  ///< as given by the receiver with its grant
  std::int32_t priority = 0;
  JobId job;
  TileId tile;
  Version number;
  PlaceId place;
  BlockRef block;
  bool empty = false;  ///< the job is cancelled: send no data, the message says so
  Send* record = nullptr;
};

/// What the protocol wants done. Filled by every event; the caller carries the actions out in any
/// order and any time later, and clears the lists.
struct Actions {
  std::vector<Task*>
      ready;  ///< all inputs and blocks are there: run it, then Protocol::task_finished
  std::vector<CopyAction> copies;
  std::vector<AskAction> asks;
  std::vector<GrantAction> grants;
  std::vector<OfferAction> offers;
  std::vector<SendAction> sends;
  std::vector<BlockRef> freed;  ///< blocks whose content is no longer needed by anyone
  std::vector<Job*> drained;    ///< jobs of which nothing is left on this node

  [[nodiscard]] bool empty() const {
    return ready.empty() && copies.empty() && asks.empty() && grants.empty() && offers.empty() &&
           sends.empty() && drained.empty();
  }
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
