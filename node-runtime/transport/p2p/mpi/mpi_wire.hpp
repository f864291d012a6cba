#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mpi.h>
#include <vector>

#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {

/// The wire over MPI: notes on a communicator of their own, pieces of bytes on another one, where
/// the flow is the tag.
///
/// Notes are received from anybody into `note_receives` buffers, and looked at in the order in
/// which these were posted: MPI fills them in the order of arrival, so notes of one node stay in
/// order. More notes wait in MPI's own queue until progress comes back; what nodes may send before
/// they are answered is bounded by their endpoints.
///
/// Thread: the one that calls MPI. Construction and destruction are collective.
class MpiWire final : public Wire {
 public:
  static constexpr std::size_t note_receives = 32;

  explicit MpiWire(MPI_Comm parent);
  MpiWire(const MpiWire&) = delete;
  MpiWire& operator=(const MpiWire&) = delete;
  /// Nothing is under way on any node, unless `abandon` was called.
  ~MpiWire() override;

  [[nodiscard]] NodeId node() const override { return NodeId{rank_}; }
  [[nodiscard]] std::int32_t nodes() const override { return size_; }
  [[nodiscard]] std::span<std::byte> begin_note(std::size_t bytes) override;
  void send_note(NodeId to) override;
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
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void post(NoteReceive& receive);
  void poll_notes(Events& events);
  void poll_pieces(Events& events);

  MPI_Comm notes_ = MPI_COMM_NULL;
  MPI_Comm pieces_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool is_abandoned_ = false;
  std::deque<NoteReceive> note_receives_;  ///< in the order in which they were posted
  std::size_t read_ = 0;                   ///< of these from the front: to be posted again
  std::deque<NoteSend> note_sends_;        ///< in the order in which they were sent
  std::vector<NoteSend> spare_notes_;      ///< that were sent; the last one is being filled in
  std::vector<MPI_Request> requests_;
  std::vector<OperationId> operations_;  ///< of requests_, by index
  std::vector<int> finished_;
};

}  // namespace heddle::p2p
