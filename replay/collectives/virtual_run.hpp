#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "node-runtime/collectives/schedule/places.hpp"
#include "replay/collectives/collective_machine.hpp"
#include "replay/collectives/link_shares.hpp"
#include "replay/collectives/virtual_schedules.hpp"
#include "replay/simulation/event_queue.hpp"

namespace heddle::replay {

/// What one operation moves; the same on all ranks.
struct VirtualMessage {
  std::function<std::int64_t(std::int32_t block)> elements;  ///< of a block
  std::int64_t element_bytes = 8;
  std::int64_t fragment_elements = 1;
  std::int32_t in_flight = 1;  ///< fragments
};

/// Runs the schedules of all ranks of one operation in virtual time. The counterpart of Execution
/// (node-runtime/collectives/execution), with the same rules: a deed begins when all that it comes
/// after has ended for its fragment, and at most in_flight fragments are under way on a rank.
///
/// Times: at a send the rank's core is busy for message_s, likewise at the end of a receive, one
/// message after the other. In between a message takes its way's latency and then passes its links
/// (LinkShares), those from one rank to another one behind the other. A message of more than
/// eager_bytes sets out when both sides have begun, and ends on both at once; any other one sets
/// out when it is sent, which ends its send. Copies and reductions of a rank run one after the
/// other, those of a GPU's ranks too: beside the messages on a GPU, on the rank's core without one.
///
/// Deterministic: no clock, no thread; events at one time come in the order in which they were
/// made. All ranks begin at 0.
class VirtualRun {
 public:
  /// Places of the ranks. All outlive it.
  VirtualRun(const CollectiveMachine& machine, const collectives::Places& places,
             const VirtualSchedules& schedules, VirtualMessage message);

  /// The most deeds of fragments that are run, about a minute's work.
  static constexpr std::int64_t events_max = 50'000'000;

  /// Seconds until each rank's part has ended. Once. Throws Error(usage) beyond events_max.
  [[nodiscard]] std::vector<double> run();

  /// After run(): messages that had elements, or carried nothing as those of a barrier.
  [[nodiscard]] std::int64_t messages() const { return messages_; }
  struct LinkUse {
    LinkId link;
    std::int64_t busy_ns = 0;
  };
  /// The link that was in use longest; link -1 where no message shared any.
  [[nodiscard]] LinkUse busiest() const;
  [[nodiscard]] const MachineLinks& links() const { return links_; }

  /// Every rank's fragments are within bounds, and links have what is on them.
  [[nodiscard]] bool is_valid() const;

 private:
  /// A deed of a fragment.
  struct Part {
    std::int64_t fragment = 0;
    std::int32_t deed = 0;
  };
  struct Event {
    enum class Kind : std::uint8_t {
      ended,     ///< the part has
      sent,      ///< the core has done its part of a send
      sets_out,  ///< the meeting's message, after its latency
      passed,    ///< the meeting's message, which no link limits
      link,      ///< the link's told end has come
      settle,    ///< all that changes at this time has changed
    };
    Kind kind = Kind::ended;
    std::int32_t number = 0;  ///< a deed, a meeting or a link
    std::int64_t fragment = 0;
  };
  /// A message's two sides.
  struct Meeting {
    std::int64_t fragment = 0;
    std::int64_t bytes = 0;
    std::int32_t receive = 0;  ///< the deed
    std::int32_t next = -1;    ///< another one of the same receive, of another fragment
    std::int32_t behind = -1;  ///< the one that passes the channel after it
    bool is_sent = false;
    bool is_awaited = false;  ///< the receive has begun
    bool has_come = false;
  };
  /// Messages from one rank to another, meetings by their numbers: -1 there is none.
  struct Channel {
    std::int32_t first = -1;  ///< on the links
    std::int32_t last = -1;
  };
  /// What a rank is at.
  struct RankState {
    std::int64_t fragments = 0;
    std::int64_t first = 0;  ///< under way
    std::int64_t next = 0;   ///< to be opened
    std::int64_t core_free_ns = 0;
    std::int64_t end_ns = 0;
  };

  [[nodiscard]] std::size_t index(const Part& part) const {
    return static_cast<std::size_t>(part.fragment % message_.in_flight * schedules_.deeds() +
                                    part.deed);
  }
  [[nodiscard]] std::int32_t& left(std::int32_t rank, std::int64_t fragment) {
    return left_[static_cast<std::size_t>(fragment % message_.in_flight * schedules_.ranks() +
                                          rank)];
  }
  [[nodiscard]] RankState& state(std::int32_t rank) {
    return ranks_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Meeting& at(std::int32_t meeting) {
    return meetings_[static_cast<std::size_t>(meeting)];
  }
  [[nodiscard]] std::int64_t elements(const Part& part) const;
  [[nodiscard]] bool is_eager(const Meeting& meeting) const {
    return meeting.bytes <= machine_.eager_bytes;
  }

  void count_fragments();
  void open_fragments(std::int32_t rank);
  void run_ready();
  void start(const Part& part);
  void start_step(const Part& part, std::int64_t bytes);
  void finish(const Part& part);
  void handle(const Event& event);

  [[nodiscard]] std::int64_t on_core(std::int32_t rank, double seconds);
  [[nodiscard]] std::int32_t meeting_of(std::int32_t receive, std::int64_t fragment);
  void release(std::int32_t meeting);
  void await(const Part& part);
  void send(const Part& part);
  void set_out(std::int32_t meeting);
  void join_channel(std::int32_t meeting);
  void pass_links(std::int32_t meeting);
  void leave_channel(std::int32_t meeting);
  void come(std::int32_t meeting);
  void deliver(std::int32_t meeting);
  void settle_later();
  void push_foreseen();

  const CollectiveMachine& machine_;
  const collectives::Places& places_;
  const VirtualSchedules& schedules_;
  VirtualMessage message_;
  LinkShares shares_;
  MachineLinks links_;

  std::int64_t now_ns_ = 0;
  std::int64_t messages_ = 0;
  EventQueue<Event> events_;
  bool settles_ = false;  ///< an event of that kind is ahead
  std::vector<LinkShares::Foreseen> foreseen_;

  std::vector<RankState> ranks_;
  std::vector<std::int32_t> befores_;      ///< of deeds under way, that have not ended: index()
  std::vector<std::int32_t> left_;         ///< deeds of a rank's fragment that have not ended
  std::vector<std::int64_t> gpu_free_ns_;  ///< by GPU of the cluster
  std::vector<std::int32_t> meetings_at_;  ///< by receive: the first of its meetings, or -1
  std::vector<Meeting> meetings_;
  std::vector<std::int32_t> free_meetings_;
  std::vector<Channel> channels_;
  std::vector<Part> ready_;
};

}  // namespace heddle::replay
