#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "node-runtime/fine/fine_scheduler.hpp"
#include "tests/support/block_ledger.hpp"
#include "tests/support/simulated_cluster.hpp"

/// What the simulated cluster keeps; for its own files alone.
namespace heddle::simulation {

struct SimulatedCluster::JobState {
  Program program;
  std::vector<NodeWalk> walks;                     ///< per node
  std::vector<std::vector<std::int32_t>> minimum;  ///< per node and place
  /// Per node: the versions from elsewhere that its tasks read, each with the place of the first.
  std::vector<std::map<std::pair<protocol::TileId, Version>, PlaceId>> first_readers;
  std::shared_ptr<ReaderWays> ways;  ///< null: all readers are announced
  std::vector<std::int32_t> executions;
  std::set<protocol::MatrixId> read;
  std::set<protocol::MatrixId> written;

  /// True when one of them writes what the other accesses.
  [[nodiscard]] bool conflicts_with(const JobState& other) const {
    const auto meet = [](const auto& a, const auto& b) {
      return std::any_of(a.begin(), a.end(), [&](const auto m) { return b.contains(m); });
    };
    return meet(written, other.read) || meet(written, other.written) || meet(read, other.written);
  }
};

/// Something on its way from one node to another.
struct SimulatedCluster::Event {
  enum class Kind : std::uint8_t { ask, grant, offer, payload };
  Kind kind = Kind::grant;
  NodeId from;
  protocol::GrantAction grant;  ///< of an ask and an offer: what names the version
  std::uint32_t tag = 0;
  Content data = 0;
  bool empty = false;
};

/// The names are kept beside the task: its record is gone, or another's, should it run again.
struct SimulatedCluster::ReadyTask {
  protocol::Task* task;
  std::size_t job;
  std::size_t statement;
  PlaceId at;                   ///< its own place, or the one that it is lent to
  Copy copy = Copy::only;       ///< of its blocks, once they are acquired
  bool leaves_nothing = false;  ///< by a fault: what it writes is not left to the host
};

/// A copy with its ends on devices, which it acquires one after the other.
struct SimulatedCluster::Copying {
  struct End {
    PlaceId place;
    SimulatedMemory::Use use;
  };
  protocol::CopyAction action;
  bool too_early = false;
  std::vector<End> ends;
  std::size_t acquired = 0;
};

struct SimulatedCluster::Node {
  struct Running {
    ReadyTask of;
    std::vector<Content> seen;  ///< empty if it never ran
  };
  struct Sent {
    protocol::SendAction send;
    Copy copy = Copy::only;
  };
  struct Landing {
    protocol::GrantAction grant;
    bool delivered = false;
  };
  /// A message that has come, and where on the device it is being received.
  struct Arrival {
    Event event;
    std::optional<Copy> copy;
  };
  NodeId id;
  std::unique_ptr<protocol::Protocol> protocol;
  protocol::Actions actions;
  std::vector<protocol::Job*> jobs;   ///< begun so far; null once forgotten
  std::vector<std::size_t> position;  ///< next step of each
  std::vector<std::size_t> drained;   ///< jobs to be forgotten
  std::vector<ReadyTask> ready;
  std::vector<ReadyTask> acquired;  ///< with their blocks
  std::vector<Running> running;
  std::vector<Copying> copies;
  std::vector<Copying> copying;  ///< with all ends
  std::vector<protocol::SendAction> sends;
  std::vector<protocol::SendAction> behind;  ///< versions that arrive, to be passed on
  std::vector<Sent> sent;                    ///< posted, completion not yet reported
  std::vector<Event> inbox;
  std::vector<Arrival> arrivals;  ///< at devices
  std::vector<Landing> landings;  ///< by tag
  BlockLedger blocks;
  std::deque<SimulatedMemory> memories;  ///< of the devices' places
  using Ticket = std::pair<PlaceId, SimulatedMemory::TicketId>;
  std::map<Ticket, ReadyTask> waiting_tasks;
  std::map<Ticket, Copying> waiting_copies;
  /// Messages whose blocks are in transfer.
  std::vector<protocol::SendAction> blocked_sends;
  std::vector<Arrival> blocked_arrivals;
  std::optional<FineScheduler> fine;
  std::vector<FineWork> fine_running;
  /// Divided tasks, with how often each of their fine tasks was begun.
  struct Divided {
    Running running;
    std::vector<std::int32_t> begun;
  };
  std::map<const DividedTask*, Divided> divided;
  std::array<double, kind_count> speeds{};
};

}  // namespace heddle::simulation
