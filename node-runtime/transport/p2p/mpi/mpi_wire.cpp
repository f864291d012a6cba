#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fmt/core.h>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/kept_memory.hpp"
#include "base/process_memory.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle::p2p {
namespace {

constexpr int note_tag = 0;
constexpr std::uint64_t probe_value = 0x6865'6464'6C65'2121;

bool can_read(pid_t process, std::uint64_t address) {
  std::uint64_t value = 0;
  const ssize_t count =
      read_process(process, address, std::as_writable_bytes(std::span(&value, 1)));
  return count == sizeof value && value == probe_value;
}

}  // namespace

MpiWire::MpiWire(MPI_Comm parent, const Options& options)
    : notes_(duplicate(parent)), pieces_(duplicate(parent)) {
  for (MPI_Comm comm : {notes_, pieces_}) {
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  check_mpi(MPI_Comm_rank(notes_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(notes_, &size_), "MPI_Comm_size");
  neighbours_.resize(static_cast<std::size_t>(size_));
  share_memory(parent, options);
  if (!note_distant_nodes()) return;
  for (std::size_t i = 0; i < note_receives; ++i) {
    NoteReceive& receive = note_receives_.emplace_back();
    receive.buffer =
        std::make_unique<std::byte[]>(note_bytes_max);  // NOLINT(modernize-avoid-c-arrays)
    post(receive);
  }
}

/// Some node is reached only by MPI.
bool MpiWire::note_distant_nodes() {
  has_distant_ = std::ranges::any_of(
      neighbours_, [](const Neighbour& neighbour) { return neighbour.shared < 0; });
  return has_distant_;
}

/// Each process of the host tells the others where its memory is and tries to map theirs; two nodes
/// share memory if each has mapped the other's.
void MpiWire::share_memory(MPI_Comm parent, const Options& options) {
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
            "MPI_Comm_split_type");
  int count = 0;
  int own = 0;
  check_mpi(MPI_Comm_size(host, &count), "MPI_Comm_size");
  check_mpi(MPI_Comm_rank(host, &own), "MPI_Comm_rank");
  const auto nodes_here = static_cast<std::size_t>(count);
  const auto self = static_cast<std::size_t>(own);
  struct Introduction {
    std::int64_t node = 0;
    HostRegion::Name region;
    std::uint64_t probe = 0;  ///< where `probed` is, for others to try to read it
  };
  const std::uint64_t probed = probe_value;
  std::vector<Introduction> all(nodes_here);
  if (options.shares_memory) own_region_.emplace(nodes_here, options.window_bytes);
  const Introduction introduction{rank_, own_region_ ? own_region_->name() : HostRegion::Name{},
                                  std::bit_cast<std::uint64_t>(&probed)};
  all_gather(std::as_bytes(std::span(&introduction, 1)), std::as_writable_bytes(std::span(all)),
             host, "introducing the nodes of a host");
  std::vector<std::optional<HostRegion>> regions(nodes_here);
  std::vector<char> reached(nodes_here);
  for (std::size_t i = 0; i < nodes_here; ++i) {
    Neighbour& neighbour = neighbours_[static_cast<std::size_t>(all[i].node)];
    neighbour.is_here = true;
    try {
      if (!options.shares_memory) throw Error(ErrorCode::communication, "it is switched off");
      regions[i].emplace(all[i].region);
      reached[i] = 1;
      // Before the next call of all, so that what is read is still there.
      neighbour.process = static_cast<pid_t>(all[i].region.pid);
      neighbour.is_read = can_read(neighbour.process, all[i].probe);
    } catch (const Error& error) {
      neighbour.why_apart = error.what();
    }
  }
  std::vector<char> reached_by_all(nodes_here * nodes_here);
  all_gather(std::as_bytes(std::span(reached)), std::as_writable_bytes(std::span(reached_by_all)),
             host, "sharing memory on a host");
  for (std::size_t i = 0; i < nodes_here; ++i) {
    Neighbour& neighbour = neighbours_[static_cast<std::size_t>(all[i].node)];
    if (reached[i] == 0) continue;
    if (reached_by_all[i * nodes_here + self] == 0) {
      neighbour.why_apart = "the other node does not reach this one's memory";
      continue;
    }
    const NodeId node{static_cast<std::int32_t>(all[i].node)};
    neighbour.shared = static_cast<std::int32_t>(shared_.size());
    NoteRingMemory* const out = regions[i]->ring(self);
    NoteRingMemory* const in = own_region_->ring(i);
    shared_.push_back(
        {node, std::move(*regions[i]), NoteWriter(out), NoteReader(in), {}, nullptr, false});
    if (i != self) {
      shared_.back().watch =
          std::make_unique<const ProcessWatch>(static_cast<pid_t>(all[i].region.pid));
    }
  }
  check_mpi(MPI_Comm_free(&host), "MPI_Comm_free");
}

MpiWire::~MpiWire() {
  if (is_abandoned_) {
    // Receives are still posted, and MPI moves messages in any call of the program's.
    keep_to_the_end(std::make_shared<std::deque<NoteReceive>>(std::move(note_receives_)));
    keep_to_the_end(std::make_shared<std::deque<NoteSend>>(std::move(note_sends_)));
    return;
  }
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

std::span<std::byte> MpiWire::window_of(NodeId node) const {
  const std::int32_t number = neighbours_[index_of(node)].shared;
  if (number < 0) return {};
  return shared_[static_cast<std::size_t>(number)].region.window();
}

void MpiWire::read(NodeId from, std::uint64_t address, std::span<std::byte> into) {
  const pid_t process = neighbours_[index_of(from)].process;
  while (!into.empty()) {
    const ssize_t count = read_process(process, address, into);
    if (count <= 0) {
      throw Error(ErrorCode::communication,
                  fmt::format("reading {} bytes of memory of node {} (process {}) at {:#x}: {}",
                              into.size(), from.value(), process, address,
                              count == 0 ? "nothing is there" : std::strerror(errno)));
    }
    address += static_cast<std::uint64_t>(count);
    into = into.subspan(static_cast<std::size_t>(count));
  }
}

// ---- notes -----------------------------------------------------------------------------------

std::span<std::byte> MpiWire::begin_note(NodeId to, std::size_t bytes) {
  HEDDLE_CHECK(bytes <= note_bytes_max, "a note of {} bytes", bytes);
  note_to_ = to;
  const std::int32_t number = neighbours_[index_of(to)].shared;
  if (number < 0) {
    if (spare_notes_.empty()) spare_notes_.emplace_back();
    spare_notes_.back().bytes.resize(bytes);
    return spare_notes_.back().bytes;
  }
  Shared& shared = shared_[static_cast<std::size_t>(number)];
  if (flush(shared)) {
    if (const auto room = shared.out.reserve(bytes)) {
      note_is_in_ring_ = true;
      return *room;
    }
  }
  note_is_in_ring_ = false;
  late_note_.resize(bytes);
  return late_note_;
}

void MpiWire::send_note() {
  const std::int32_t number = neighbours_[index_of(note_to_)].shared;
  if (number >= 0) {
    Shared& shared = shared_[static_cast<std::size_t>(number)];
    if (note_is_in_ring_) {
      shared.out.commit();
    } else if (!shared.is_lost) {
      shared.waiting.push_back(std::exchange(late_note_, {}));
    }
    return;
  }
  NoteSend& send = note_sends_.emplace_back(std::move(spare_notes_.back()));
  spare_notes_.pop_back();
  send.to = note_to_;
  neighbours_[index_of(note_to_)].unsent_bytes += send.bytes.size();
  check_mpi(MPI_Isend(send.bytes.data(), static_cast<int>(send.bytes.size()), MPI_BYTE,
                      note_to_.value(), note_tag, notes_, &send.request),
            "sending a note");
}

/// As many bytes as a ring holds may be on their way to any node.
bool MpiWire::is_behind(NodeId to) const {
  const Neighbour& neighbour = neighbours_[index_of(to)];
  if (neighbour.shared < 0) return neighbour.unsent_bytes >= NoteRingMemory::capacity;
  return !shared_[static_cast<std::size_t>(neighbour.shared)].waiting.empty();
}

bool MpiWire::has_unsent_notes() const {
  return !note_sends_.empty() ||
         std::ranges::any_of(shared_, [](const Shared& shared) { return !shared.waiting.empty(); });
}

/// Writes the waiting notes; true: none waits any more.
bool MpiWire::flush(Shared& shared) {
  while (!shared.waiting.empty()) {
    const auto room = shared.out.reserve(shared.waiting.front().size());
    if (!room) return false;
    std::ranges::copy(shared.waiting.front(), room->begin());
    shared.out.commit();
    shared.waiting.pop_front();
  }
  return true;
}

void MpiWire::poll_shared(Events& events) {
  for (Shared& shared : shared_) {
    shared.in.release();  // what was handed out has been read by now
    static_cast<void>(flush(shared));
    while (const auto note = shared.in.next()) events.notes.push_back({shared.node, *note});
  }
}

/// Frees the requests with a lost node, which will not complete.
void MpiWire::forget_pieces(NodeId node) {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (with_[i] != node) continue;
    MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);  // null then
  }
  drop_ended_pieces();
}

/// Removes the operations whose requests are null.
void MpiWire::drop_ended_pieces() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    operations_[kept] = operations_[i];
    with_[kept] = with_[i];
    is_receive_[kept] = is_receive_[i];
    ++kept;
  }
  requests_.resize(kept);
  operations_.resize(kept);
  with_.resize(kept);
  is_receive_.resize(kept);
}

/// Notes that a process had written before it ended were read above.
void MpiWire::watch(Events& events) {
  if (++polls_ % polls_between_looks != 0) return;
  const std::int64_t now = now_ns();
  if (now - watched_ns_ < watch_ns) return;
  watched_ns_ = now;
  for (Shared& shared : shared_) {
    if (shared.watch == nullptr || shared.is_lost || !shared.watch->has_ended()) continue;
    while (const auto note = shared.in.next()) events.notes.push_back({shared.node, *note});
    shared.is_lost = true;
    shared.waiting.clear();
    forget_pieces(shared.node);
    events.lost.push_back(shared.node);
  }
}

// ---- pieces ----------------------------------------------------------------------------------

void MpiWire::send_bytes(NodeId to, FlowId flow, std::span<const std::byte> bytes, OperationId id) {
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  operations_.push_back(id);
  with_.push_back(to);
  is_receive_.push_back(0);
  check_mpi(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to.value(),
                      flow.value(), pieces_, &request),
            "sending a piece of a message");
}

void MpiWire::receive_bytes(NodeId from, FlowId flow, std::span<std::byte> into, OperationId id) {
  MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
  operations_.push_back(id);
  with_.push_back(from);
  is_receive_.push_back(1);
  check_mpi(MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_BYTE, from.value(),
                      flow.value(), pieces_, &request),
            "receiving a piece of a message");
}

void MpiWire::poll(Events& events) {
  poll_shared(events);
  if (has_distant_) poll_notes(events);
  poll_pieces(events);
  watch(events);
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
    const NoteSend& sent = note_sends_.front();
    neighbours_[index_of(sent.to)].unsent_bytes -= sent.bytes.size();
    spare_notes_.push_back(std::move(note_sends_.front()));
    note_sends_.pop_front();
  }
}

void MpiWire::poll_pieces(Events& events) {
  if (requests_.empty()) return;
  finished_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                         finished_.data(), statuses_.data()),
            "waiting for pieces of messages");
  if (count <= 0) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto index = static_cast<std::size_t>(finished_[i]);
    int bytes = 1;
    if (is_receive_[index] != 0) {
      check_mpi(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes), "waiting for pieces of messages");
    }
    (bytes == 0 ? events.blank : events.complete).push_back(operations_[index]);
  }
  drop_ended_pieces();
}

}  // namespace heddle::p2p
