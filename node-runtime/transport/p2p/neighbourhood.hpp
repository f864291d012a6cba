#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/mappings.hpp"
#include "node-runtime/transport/p2p/note_payloads.hpp"
#include "node-runtime/transport/p2p/notes.hpp"
#include "node-runtime/transport/p2p/requests.hpp"
#include "node-runtime/transport/p2p/side.hpp"
#include "node-runtime/transport/p2p/slots.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// A request to make all nodes close an allocation of this node.
struct Release : RequestState {
  Release() : RequestState(true) {}

  LaneId lane;
  IpcMemoryHandle handle;            ///< of the allocation
  const std::byte* begin = nullptr;  ///< likewise
  std::vector<NodeId> waits_for;

  /// The memory of `side` is in the allocation.
  [[nodiscard]] bool is_of(const Side& side) const;
};

/// Two devices, the peer's and this node's; -1: host memory.
struct DevicePair {
  std::int32_t theirs = -1;
  std::int32_t here = -1;
  friend auto operator<=>(const DevicePair&, const DevicePair&) = default;
};

/// What a node knows of another one. A reason is empty where the access works.
struct Neighbour {
  bool is_lost = false;
  bool is_introduced_to = false;  ///< this node has said which devices it has
  bool has_introduced = false;    ///< that node has
  bool has_said_goodbye = false;
  std::vector<DeviceIntroduction> devices;
  std::string_view no_shared_there;  ///< why its devices cannot write to this node's window
  std::string_view not_read_here;    ///< why this node's processor cannot read its memory
  std::map<DevicePair, std::string_view> not_mapped_here;   ///< its memory
  std::map<DevicePair, std::string_view> not_mapped_there;  ///< this node's memory
};

/// What an endpoint knows of the other nodes: which devices they have, what of their memory is
/// mapped here, what of this node's memory they may have mapped, and what was refused. A refused
/// mapping is not tried again.
///
/// Device memory that another node may have mapped is freed in three steps: release() asks every
/// such node to close its mapping, each answers `released`, and when the last has, the request is
/// over. This cannot deadlock: a node answers when its last message by that mapping has ended, and
/// release() is refused while this node has a message there.
///
/// Invariant (`is_valid()`), for every other node: |devices| > 0 => has_introduced;
/// has_said_goodbye => is_introduced_to. For every release under way: waits_for is not empty and
/// has no lost node. No allocation counts as mapped by this node itself.
///
/// Thread: the progress thread only.
class Neighbourhood {
 public:
  /// `mapper` may be null: Mapper.
  Neighbourhood(Wire& wire, Notes& notes, const Lanes& lanes, const Slots& slots,
                Requests& requests, Mapper* mapper, std::int32_t mappings_max);
  Neighbourhood(const Neighbourhood&) = delete;
  Neighbourhood& operator=(const Neighbourhood&) = delete;

  [[nodiscard]] const Neighbour& of(NodeId node) const {
    return neighbours_[static_cast<std::size_t>(node.value())];
  }
  [[nodiscard]] bool is_lost(NodeId node) const { return of(node).is_lost; }

  // ---- introductions --------------------------------------------------------------------------
  /// Tells a node which devices this one has, before any note that mentions them; also that it has
  /// none, since the other node waits for that. Only the first call for a node of this host has an
  /// effect.
  void introduce(NodeId to);
  void introduced(NodeId from, std::span<const std::byte> payload);
  /// Introduces this node to all others and maps their rings as they introduce themselves.
  void meet();
  /// Nodes of this host that have not introduced themselves; none where this node has no devices.
  [[nodiscard]] std::vector<NodeId> unknown() const;

  // ---- others' memory -------------------------------------------------------------------------
  /// Memory of another node, or of this one. Throws Error(communication) when it cannot be mapped.
  [[nodiscard]] Spot map(NodeId node, LaneId via, const MemoryReference& memory,
                         std::shared_ptr<const Mappings::Use>& use);
  /// Maps memory that the next message may use. Why not; empty: it is mapped.
  [[nodiscard]] std::string map_for_the_next(NodeId node, LaneId via,
                                             const MemoryReference& memory);
  /// As map() would find it without opening anything.
  [[nodiscard]] bool has_mapped(NodeId node, LaneId via, const MemoryReference& memory);
  void not_mapped_here(NodeId node, DevicePair pair, std::string_view why);
  void not_mapped_there(NodeId node, DevicePair pair, std::string_view why);
  void not_shared_there(NodeId node, std::string_view why);
  void not_read_here(NodeId node, std::string_view why);

  // ---- this node's memory ---------------------------------------------------------------------
  /// A reference by which `for_node` may map the side's memory; nullopt where it cannot. From now
  /// on the node counts as one that has mapped it.
  [[nodiscard]] std::optional<MemoryReference> reference_to(const Side& side, NodeId for_node);
  /// A reference by which `for_node` may map a place in device memory of this node; nullopt where
  /// it cannot. It counts likewise. Throws Error(usage) for memory of no device.
  [[nodiscard]] std::optional<MemoryReference> refer(const std::byte* memory, NodeId for_node);
  /// `node` may have mapped the side's device memory. Throws Error(communication) for memory that
  /// cannot be shared.
  [[nodiscard]] bool may_be_mapped_by(NodeId node, const Side& side);
  /// No message uses the allocation.
  void release(const std::shared_ptr<Release>& release);
  /// Another node frees its memory.
  void close_mapping(NodeId from, const ReleasedMemory& memory);
  void released(NodeId from, const ReleasedMemory& memory);

  // ---- the end --------------------------------------------------------------------------------
  void lost(NodeId node);
  /// Closes what is mapped here, and tells the others. No message uses a mapping.
  void close();
  void said_goodbye(NodeId from) { at(from).has_said_goodbye = true; }
  /// After close(): all others have closed what they had mapped of this node.
  [[nodiscard]] bool is_closed() const;
  void abandon(const Error& why);

  [[nodiscard]] const Mappings::Statistics& statistics() const { return mappings_.statistics(); }
  [[nodiscard]] bool is_valid() const;

 private:
  /// An allocation of this node, as other nodes know it.
  using AllocationKey = std::pair<std::int32_t, std::uint64_t>;  ///< lane, allocation

  [[nodiscard]] Neighbour& at(NodeId node) {
    return neighbours_[static_cast<std::size_t>(node.value())];
  }
  [[nodiscard]] std::optional<MemoryReference> refer(LaneId lane, const std::byte* memory,
                                                     NodeId for_node);
  void map_rings(NodeId node);
  void end_releases();
  void say_goodbye(NodeId to);
  /// The same text, which lives as long as this.
  [[nodiscard]] std::string_view keep(std::string_view reason) {
    return *reasons_.emplace(reason).first;
  }

  Wire& wire_;
  Notes& notes_;
  const Lanes& lanes_;
  const Slots& slots_;
  Requests& requests_;
  Mapper own_mapper_;
  Mappings mappings_;
  std::vector<Neighbour> neighbours_;  ///< by node
  std::set<std::string, std::less<>> reasons_;
  std::map<AllocationKey, std::set<NodeId>> told_;  ///< nodes that may have mapped an allocation
  RecentHandles handles_;
  std::vector<std::shared_ptr<Release>> releases_;
  bool maps_rings_ = false;
  bool is_closing_ = false;
};

}  // namespace heddle::p2p
