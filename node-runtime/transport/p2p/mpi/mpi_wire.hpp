#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mpi.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/process_watch.hpp"
#include "node-runtime/transport/p2p/mpi/host_region.hpp"
#include "node-runtime/transport/p2p/mpi/note_ring.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// The wire over MPI, and between nodes of one host over memory that they share.
///
/// Over MPI: notes on a communicator of their own, pieces of bytes on another one, where the flow
/// is the tag. Notes are received from any source into `note_receives` buffers, and read in the
/// order in which these were posted: MPI fills them in the order of arrival, so notes of one node
/// stay in order. More notes wait in MPI's own queue until progress comes back.
///
/// On one host: notes in a ring for each pair (NoteRingMemory), windows, and reading of each
/// other's memory by the system's call, where the system permits it. A note that finds its ring
/// full waits here, and is written before all later ones. Nodes that cannot map each other's memory
/// (another user, another PID namespace) go on over MPI: `why_apart()`.
///
/// No call waits for another node, which may be stopped. The endpoints and their programs bound the
/// notes in flight, what has no bound of its own by asking is_behind(). A node of this host whose
/// process has ended is reported as lost within `watch_ns`.
///
/// Thread: the one that calls MPI. Construction and destruction are collective.
class MpiWire final : public Wire {
 public:
  static constexpr std::size_t note_receives = 32;
  static constexpr std::int64_t watch_ns = 50'000'000;
  /// Polls between two readings of the clock, which takes as long as the rest of an empty poll.
  static constexpr std::uint64_t polls_between_looks = 64;

  struct Options {
    std::size_t window_bytes = 0;
    bool shares_memory = true;  ///< false: only over MPI, for comparisons
  };

  MpiWire(MPI_Comm parent, const Options& options);
  MpiWire(const MpiWire&) = delete;
  MpiWire& operator=(const MpiWire&) = delete;
  /// No operation is in progress on any node, unless `abandon` was called.
  ~MpiWire() override;

  [[nodiscard]] NodeId node() const override { return NodeId{rank_}; }
  [[nodiscard]] std::int32_t nodes() const override { return size_; }
  [[nodiscard]] bool shares_host(NodeId other) const override {
    return neighbours_[index_of(other)].is_here;
  }
  [[nodiscard]] std::span<std::byte> window() const override { return window_of(node()); }
  [[nodiscard]] std::span<std::byte> window_of(NodeId node) const override;
  /// Why this node and one of its host share no memory; empty where they do.
  [[nodiscard]] const std::string& why_apart(NodeId other) const {
    return neighbours_[index_of(other)].why_apart;
  }
  [[nodiscard]] bool reads(NodeId node) const override {
    return neighbours_[index_of(node)].is_read;
  }
  void read(NodeId from, std::uint64_t address, std::span<std::byte> into) override;
  [[nodiscard]] std::span<std::byte> begin_note(NodeId to, std::size_t bytes) override;
  void send_note() override;
  [[nodiscard]] bool is_behind(NodeId to) const override;
  /// Some notes have neither been written where their reader finds them nor been taken by MPI.
  [[nodiscard]] bool has_unsent_notes() const;
  void send_bytes(NodeId to, FlowId flow, std::span<const std::byte> bytes,
                  OperationId id) override;
  void receive_bytes(NodeId from, FlowId flow, std::span<std::byte> into, OperationId id) override;
  void poll(Events& events) override;

  /// After a failure: MPI is not called any more.
  void abandon() { is_abandoned_ = true; }

 private:
  using Buffer = std::unique_ptr<std::byte[]>;  // NOLINT(modernize-avoid-c-arrays)
  struct NoteReceive {
    Buffer buffer;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct NoteSend {
    NodeId to;
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// What is known of a node's place.
  struct Neighbour {
    bool is_here = false;      ///< on this host
    std::string why_apart;     ///< not that memory is shared
    std::int32_t shared = -1;  ///< its number in shared_
    bool is_read = false;      ///< its process's memory, by this one
    pid_t process = 0;
    std::size_t unsent_bytes = 0;  ///< of notes that MPI has not taken yet
  };
  /// A node, perhaps this one, with which memory is shared.
  struct Shared {
    NodeId node;
    HostRegion region;
    NoteWriter out;
    NoteReader in;
    std::deque<std::vector<std::byte>> waiting;  ///< notes that found the ring full
    std::unique_ptr<const ProcessWatch> watch;
    bool is_lost = false;
  };

  [[nodiscard]] static std::size_t index_of(NodeId node) {
    return static_cast<std::size_t>(node.value());
  }
  void share_memory(MPI_Comm parent, const Options& options);
  [[nodiscard]] bool note_distant_nodes();
  void post(NoteReceive& receive);
  [[nodiscard]] static bool flush(Shared& shared);
  void poll_shared(Events& events);
  void poll_notes(Events& events);
  void poll_pieces(Events& events);
  void watch(Events& events);
  void forget_pieces(NodeId node);
  void drop_ended_pieces();

  MPI_Comm notes_ = MPI_COMM_NULL;
  MPI_Comm pieces_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool is_abandoned_ = false;
  std::vector<Neighbour> neighbours_;  ///< by node
  std::optional<HostRegion> own_region_;
  std::vector<Shared> shared_;
  bool has_distant_ = false;  ///< nodes that only MPI reaches
  NodeId note_to_;            ///< of the note that is being filled in
  bool note_is_in_ring_ = false;
  std::vector<std::byte> late_note_;  ///< likewise, if it finds the ring full
  std::uint64_t polls_ = 0;
  std::int64_t watched_ns_ = 0;
  std::deque<NoteReceive> note_receives_;  ///< in the order in which they were posted
  std::size_t read_ = 0;                   ///< of these from the front: to be posted again
  std::deque<NoteSend> note_sends_;        ///< in the order in which they were sent
  std::vector<NoteSend> spare_notes_;      ///< that were sent; the last one is being filled in
  std::vector<MPI_Request> requests_;
  std::vector<OperationId> operations_;  ///< of requests_, by index
  std::vector<NodeId> with_;             ///< likewise: the other node
  std::vector<char> is_receive_;         ///< likewise
  std::vector<int> finished_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace heddle::p2p
