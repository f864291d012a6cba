#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node-runtime/collectives/execution/compiled_schedule.hpp"
#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/collectives/schedule/schedule.hpp"

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
};

/// Where a rank has a block of a message, in elements.
struct BlockPlace {
  std::int64_t count = 0;
  std::int64_t input = 0;       ///< its first element in the input, if it is there
  std::int64_t output = 0;      ///< and in the output
  std::uint64_t signature = 0;  ///< of its elements: the same on all ranks that pass it on
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
  std::uint64_t seal = 0;                    ///< the same on all ranks whose calls fit together
  std::function<void()> finish{};            ///< when all has been done; may be empty
  std::shared_ptr<std::byte[]> own_slots{};  // NOLINT: keeps the slots; null: the caller does
  /// Where each slot begins, in bytes, if they are not alike; only with one fragment. Null: they
  /// are.
  std::shared_ptr<const std::vector<std::int64_t>> slot_begins{};
  /// Does a copy of elements that do not lie in one piece; false: its bytes are copied. May be
  /// empty.
  std::function<bool(const Step& step, const std::byte* from, std::byte* to)> copy{};
};

/// Advances one rank's schedule of an operation on host memory: a deed begins when all that it
/// comes after has ended for its fragment; at most in_flight fragments are under way.
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
  /// A message of the courier's has ended, well or not: begins what follows.
  void ended(std::int64_t ticket, const Error* failure = nullptr);
  /// When is_over(): what the task asks for then. Once.
  void finish_task();
  /// Begins nothing any more; is over when the messages under way have ended.
  void fail(const Error& why);

  /// All has been done, or it has failed and no message is under way.
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
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

  [[nodiscard]] Fragment& fragment(std::int64_t number) {
    return fragments_[static_cast<std::size_t>(number % task_.in_flight)];
  }
  [[nodiscard]] std::int64_t elements(std::int32_t block, std::int64_t fragment) const;
  [[nodiscard]] std::byte* memory(const Spot& spot, std::int32_t block,
                                  std::int64_t fragment) const;
  [[nodiscard]] std::span<std::byte> bytes(const Spot& spot, std::int32_t block,
                                           std::int64_t fragment) const;
  void open_fragments();
  void run_ready();
  void start(std::int64_t fragment, std::int32_t deed);
  [[nodiscard]] bool start_message(std::int64_t fragment, std::int32_t deed);
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
  std::int64_t messages_ = 0;  ///< under way
  bool is_running_ = false;    ///< run_ready() is on the stack
  std::optional<Error> failure_;
};

}  // namespace heddle::collectives
