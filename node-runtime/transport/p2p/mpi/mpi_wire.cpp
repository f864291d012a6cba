#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"

#include <utility>

#include "base/assert.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle::p2p {
namespace {

constexpr int note_tag = 0;

}  // namespace

MpiWire::MpiWire(MPI_Comm parent) {
  check_mpi(MPI_Comm_dup(parent, &notes_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_dup(parent, &pieces_), "MPI_Comm_dup");
  for (MPI_Comm comm : {notes_, pieces_}) {
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  check_mpi(MPI_Comm_rank(notes_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(notes_, &size_), "MPI_Comm_size");
  for (std::size_t i = 0; i < note_receives; ++i) {
    NoteReceive& receive = note_receives_.emplace_back();
    receive.buffer =
        std::make_unique<std::byte[]>(note_bytes_max);  // NOLINT(modernize-avoid-c-arrays)
    post(receive);
  }
}

MpiWire::~MpiWire() {
  if (is_abandoned_) return;
  HEDDLE_CHECK(requests_.empty(), "the wire ends with {} pieces on their way", requests_.size());
  for (NoteReceive& receive : note_receives_) {
    if (receive.request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&receive.request);
    MPI_Wait(&receive.request, MPI_STATUS_IGNORE);
  }
  for (NoteSend& send : note_sends_) MPI_Wait(&send.request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&notes_);
  MPI_Comm_free(&pieces_);
}

void MpiWire::post(NoteReceive& receive) {
  check_mpi(MPI_Irecv(receive.buffer.get(), static_cast<int>(note_bytes_max), MPI_BYTE,
                      MPI_ANY_SOURCE, note_tag, notes_, &receive.request),
            "receiving notes");
}

std::span<std::byte> MpiWire::begin_note(std::size_t bytes) {
  HEDDLE_CHECK(bytes <= note_bytes_max, "a note of {} bytes", bytes);
  if (spare_notes_.empty()) spare_notes_.emplace_back();
  spare_notes_.back().bytes.resize(bytes);
  return spare_notes_.back().bytes;
}

void MpiWire::send_note(NodeId to) {
  NoteSend& send = note_sends_.emplace_back(std::move(spare_notes_.back()));
  spare_notes_.pop_back();
  check_mpi(MPI_Isend(send.bytes.data(), static_cast<int>(send.bytes.size()), MPI_BYTE, to.value(),
                      note_tag, notes_, &send.request),
            "sending a note");
}

void MpiWire::send_bytes(NodeId to, FlowId flow, std::span<const std::byte> bytes, OperationId id) {
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  operations_.push_back(id);
  check_mpi(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to.value(),
                      flow.value(), pieces_, &request),
            "sending a piece of a message");
}

void MpiWire::receive_bytes(NodeId from, FlowId flow, std::span<std::byte> into, OperationId id) {
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  operations_.push_back(id);
  check_mpi(MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_BYTE, from.value(),
                      flow.value(), pieces_, &request),
            "receiving a piece of a message");
}

void MpiWire::poll(Events& events) {
  poll_notes(events);
  poll_pieces(events);
}

void MpiWire::poll_notes(Events& events) {
  // What was handed out has been read by now.
  for (; read_ > 0; --read_) {
    post(note_receives_.front());
    note_receives_.push_back(std::move(note_receives_.front()));
    note_receives_.pop_front();
  }
  while (read_ < note_receives_.size()) {
    NoteReceive& next = note_receives_[read_];
    int is_done = 0;
    MPI_Status status;
    check_mpi(MPI_Test(&next.request, &is_done, &status), "receiving notes");
    if (is_done == 0) break;
    int bytes = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "receiving notes");
    events.notes.push_back(
        {NodeId{status.MPI_SOURCE}, {next.buffer.get(), static_cast<std::size_t>(bytes)}});
    ++read_;
  }
  while (!note_sends_.empty()) {
    int is_done = 0;
    check_mpi(MPI_Test(&note_sends_.front().request, &is_done, MPI_STATUS_IGNORE),
              "sending a note");
    if (is_done == 0) break;
    spare_notes_.push_back(std::move(note_sends_.front()));
    note_sends_.pop_front();
  }
}

void MpiWire::poll_pieces(Events& events) {
  if (requests_.empty()) return;
  finished_.resize(requests_.size());
  int count = 0;
  check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                         finished_.data(), MPI_STATUSES_IGNORE),
            "waiting for pieces of messages");
  if (count <= 0) return;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)]);
    events.complete.push_back(operations_[index]);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    operations_[kept] = operations_[i];
    ++kept;
  }
  requests_.resize(kept);
  operations_.resize(kept);
}

}  // namespace heddle::p2p
