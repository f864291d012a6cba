#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/execution/compiled_schedule.hpp"
#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"
#include "node-runtime/transport/p2p/work.hpp"

namespace heddle::collectives {

/// Sends and receives the messages of an execution. A message has the same name on both sides. Of
/// the messages between two ranks that have equal names, the first send is for the first receive,
/// and so on. When a message has ended, the thread that has the execution for itself calls
/// Execution::ended(), perhaps before send() or receive() returns.
class Courier {
 public:
  struct Name {
    std::int64_t fragment = 0;
    std::int32_t number = 0;    ///< CompiledSchedule::Deed::number
    std::int32_t messages = 0;  ///< Deed::messages
    std::uint64_t seal = 0;     ///< Task::seal, and what the blocks are
  };
  Courier() = default;
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  virtual ~Courier() = default;

  /// The memory must stay until the message has ended; pieces of both sides have the same lengths.
  virtual void send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
                    std::int64_t ticket) = 0;
  virtual void receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
                       std::int64_t ticket) = 0;

  // ---- for ranks with devices -----------------------------------------------------------------
  /// Work of a device, which ends as a message does.
  virtual void work(p2p::DeviceWork work, std::int64_t ticket);
  /// A reference to device memory for other ranks.
  virtual void refer(std::shared_ptr<p2p::Referral> referral, std::int64_t ticket);
};

/// Where a rank has a block of a message, in elements.
struct BlockPlace {
  std::int64_t count = 0;
  std::int64_t input = 0;       ///< its first element in the input, if it is there
  std::int64_t output = 0;      ///< and in the output
  std::uint64_t signature = 0;  ///< of its elements: the same on all ranks that pass it on
};

/// What has to be done beside a schedule's steps, as packing on a device. `begin` begins it by way
/// of the courier, which reports its end with the ticket; true: it has ended already.
struct Chore {
  std::string what;  ///< "packing on the device"
  std::function<bool(Courier& courier, std::int64_t ticket)> begin;
};
/// Chores that may be done at the same time.
using Stage = std::vector<Chore>;

/// What a rank does in place of a schedule's steps where the next thing to do depends on what ends
/// first. It begins messages and works by the courier, with tickets of its own from 0.
///
/// Lives until all of them have ended, unless the operation has failed; then, too, none is under
/// way. Thread: one at a time.
class Errand {
 public:
  Errand() = default;
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;
  virtual ~Errand() = default;

  /// Once. `courier` outlives the errand.
  virtual void begin(Courier& courier) = 0;
  /// What was begun with the ticket has ended well. Not before the call that began it has returned.
  virtual void ended(std::int64_t ticket) = 0;
  /// All has been done, and nothing is under way.
  [[nodiscard]] virtual bool is_over() const = 0;
  /// "rank 3's copy of fragment 2".
  [[nodiscard]] virtual std::string waits_for() const = 0;
  /// When it is over, how it was done: "gsb, 3 of 4 copies staged".
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// The memory and meaning of one operation on one rank.
struct Task {
  std::shared_ptr<const CompiledSchedule> schedule;
  std::function<BlockPlace(std::int32_t block)> place;
  std::int64_t element_bytes = 0;
  std::int64_t fragment_elements = 1;
  std::int32_t in_flight = 1;  ///< fragments
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  /// For in_flight fragments the schedule's slots, each of a fragment.
  std::byte* slots = nullptr;
  ReduceOperation operation = ReduceOperation::sum();
  Scalar scalar = Scalar::byte;
  std::uint64_t seal = 0;  ///< the same on all ranks whose calls fit together
  /// The device of the node's that input, output and slots are on, but the host cache; none: the
  /// host.
  std::optional<p2p::LaneId> lane{};
  /// Then: memory there for messages of several blocks.
  std::function<std::shared_ptr<std::byte>(std::int64_t bytes)> scratch{};
  std::vector<Stage> before{};      ///< one after the other, before the steps
  std::function<bool()> has_all{};  ///< asked then: no step is needed; may be empty
  /// Asked behind it, if steps are needed: what is done in their place; null: they are. May be
  /// empty.
  std::function<std::shared_ptr<Errand>()> errand{};
  /// For in_flight fragments the slots of the schedule's host cache, in host memory.
  std::shared_ptr<std::byte> host_slots{};
  std::string way_of_steps{};  ///< what Execution::way() says where the steps are done
  /// Asked then: why a way that the stages before would have been cannot be taken. May be empty.
  std::function<std::string()> why_not{};
  std::vector<Stage> after{};              ///< behind the steps
  std::function<void()> finish{};          ///< when all has been done; may be empty
  std::shared_ptr<std::byte> own_slots{};  ///< keeps the slots; null: the caller does
  std::shared_ptr<const void> memory{};    ///< keeps input and output, where they are packed
  /// Where each slot begins, in bytes, if they are not alike; only with one fragment. Null: they
  /// are.
  std::shared_ptr<const std::vector<std::int64_t>> slot_begins{};
  /// Does a copy of elements that do not lie in one piece; false: its bytes are copied. May be
  /// empty.
  std::function<bool(const Step& step, const std::byte* from, std::byte* to)> copy{};
  /// Works of devices that a copy needs beside `copy`, without a lane of the task's: one behind the
  /// other, none if the host does all of it. May be empty.
  std::function<std::vector<p2p::DeviceWork>(const Step& step, const std::byte* from,
                                             std::byte* to)>
      works{};
};

/// Advances one rank's operation: the stages before, the schedule or the errand in its place, the
/// stages behind it. A deed of
/// the schedule begins when all that it comes after has ended for its fragment; at most in_flight
/// fragments are under way. Copies and reductions are done at once on the host, and are works on a
/// device.
///
/// Invariant (is_valid()): fragments before `first_` have ended; those from first_ on are under
/// way, at most in_flight; a fragment's counts of what deeds wait for are those of its ended deeds.
///
/// No deadlock: Schedule argues it; every message begins as soon as its deed may.
///
/// Thread: one at a time.
class Execution {
 public:
  Execution(Task task, Courier& courier);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  /// Begins all that may begin. Once; afterwards ended() goes on.
  void begin();
  /// What the courier was asked for has ended, well or not: begins what follows.
  void ended(std::int64_t ticket, const Error* failure = nullptr);
  /// When is_over(): what the task asks for then; gives back its memory. Once.
  void finish_task();
  /// Begins nothing any more; is over when the messages and works under way have ended.
  void fail(const Error& why);

  /// All has been done, or it has failed and nothing is under way.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  /// When it is over, what was done in place of the steps: "direct" where Task::has_all was true,
  /// or what the errand says; of the steps, Task::way_of_steps.
  [[nodiscard]] const std::string& way() const { return way_; }
  /// Then: what Task::why_not has said.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// "receive block 3 from rank 2 to the output" of the first fragment under way; empty: it is
  /// over.
  [[nodiscard]] std::string waits_for() const;

  [[nodiscard]] bool is_valid() const;

 private:
  /// A fragment under way.
  struct Fragment {
    std::int64_t number = 0;
    std::int32_t left = 0;              ///< deeds that have not ended
    std::vector<std::int32_t> befores;  ///< of each deed, that have not ended; -1: it has
  };

  /// A message of several blocks in device memory: gathered in one piece of it, since its blocks
  /// may lie in several allocations.
  struct Gathered {
    std::shared_ptr<std::byte> memory;
    std::vector<std::span<std::byte>> pieces;
    Rank peer{0};
    Courier::Name name;
    bool is_send = false;
    bool is_half_done = false;  ///< gathered, or received
  };
  enum class Phase : std::uint8_t { before, errand, steps, after, over };

  /// Counts what the errand has under way.
  class ErrandCourier final : public Courier {
   public:
    explicit ErrandCourier(Execution& of) : of_(of) {}
    void send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
              std::int64_t ticket) override;
    void receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
                 std::int64_t ticket) override;
    void work(p2p::DeviceWork work, std::int64_t ticket) override;
    void refer(std::shared_ptr<p2p::Referral> referral, std::int64_t ticket) override;

   private:
    [[nodiscard]] std::int64_t count(std::int64_t ticket) const;

    Execution& of_;
  };

  [[nodiscard]] Fragment& fragment(std::int64_t number) {
    return fragments_[static_cast<std::size_t>(number % task_.in_flight)];
  }
  [[nodiscard]] std::int64_t elements(std::int32_t block, std::int64_t fragment) const;
  [[nodiscard]] std::byte* memory(const Spot& spot, std::int32_t block,
                                  std::int64_t fragment) const;
  [[nodiscard]] std::span<std::byte> bytes(const Spot& spot, std::int32_t block,
                                           std::int64_t fragment) const;
  void go_on();
  void enter(Phase phase);
  [[nodiscard]] bool run_errand();
  void skip_steps();
  void choose_way();
  [[nodiscard]] bool next_stage(const std::vector<Stage>& stages);
  void open_fragments();
  void run_ready();
  void start(std::int64_t fragment, std::int32_t deed);
  [[nodiscard]] bool start_message(std::int64_t fragment, std::int32_t deed);
  void start_gathered(Gathered gathered, std::int64_t ticket);
  /// False: the message is over.
  [[nodiscard]] bool continue_gathered(std::int64_t ticket);
  void move(const Gathered& gathered, std::int64_t ticket);
  [[nodiscard]] bool start_work(std::int64_t fragment, std::int32_t deed);
  /// The device of the task's lane if the memory is there, otherwise null.
  [[nodiscard]] static const Device* device_of(const Spot& spot, const p2p::WorkPlace& place) {
    return spot.memory == Spot::Memory::host_cache ? nullptr : &place.stream.device();
  }
  // In copy_works.cpp.
  /// False: the copy needs none, and has not begun.
  [[nodiscard]] bool start_copy_works(std::int64_t fragment, std::int32_t deed);
  /// False: the deed has none left.
  [[nodiscard]] bool continue_copy_works(std::int64_t ticket);
  void run_step(const Step& step, std::int64_t fragment) const;
  void finish(std::int64_t fragment, std::int32_t deed);
  [[nodiscard]] std::int64_t ticket_of(std::int64_t fragment, std::int32_t deed) const;

  /// A deed of a fragment.
  struct Ready {
    std::int64_t fragment;
    std::int32_t deed;
  };

  Task task_;
  Courier& courier_;
  std::int64_t fragment_count_ = 0;
  std::int64_t first_ = 0;           ///< under way
  std::int64_t next_ = 0;            ///< to be opened
  std::vector<Fragment> fragments_;  ///< by number modulo in_flight
  std::vector<Ready> ready_;
  Phase phase_ = Phase::before;
  std::size_t stage_ = 0;                      ///< of the phase, to begin next
  std::int32_t chores_left_ = 0;               ///< of the stage under way
  std::map<std::int64_t, Gathered> gathered_;  ///< by ticket
  /// Of copies that have begun: those to come, the next one last; by ticket.
  std::map<std::int64_t, std::vector<p2p::DeviceWork>> copy_works_;
  std::int64_t messages_ = 0;  ///< under way, with works and chores
  ErrandCourier errand_courier_{*this};
  /// The courier's ticket for the errand's ticket 0; stages have fewer chores.
  static constexpr std::int64_t errand_tickets = -(std::int64_t{1} << 40U);
  bool errand_has_begun_ = false;
  std::deque<std::int64_t> errand_ended_;  ///< its tickets that it has not been told of
  std::shared_ptr<Errand> errand_;
  std::string way_;
  std::string why_not_;
  bool is_running_ = false;   ///< run_ready() is on the stack
  bool is_going_on_ = false;  ///< likewise
  std::optional<Error> failure_;
};

}  // namespace heddle::collectives
