#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/options.hpp"

namespace heddle {

class Stream;

namespace collectives {
class ExchangeCore;
class Operation;
}  // namespace collectives

/// What this rank sends to a neighbour in each round.
struct OutgoingPart {
  int to = 0;
  Outgoing elements;
};

/// Where it receives what a neighbour sends.
struct IncomingPart {
  int from = 0;
  Incoming elements;
};

/// How an exchange is to be done; the same on all ranks.
struct ExchangeOptions {
  /// "neighbours": a message for each part. "aggregated": what goes from one host to another is
  /// gathered into one message. "auto": the faster one of both. For comparison, between all ranks
  /// whether they are neighbours or not, "alltoallv", and "alltoall" with padding to one length.
  std::string method = "auto";
  /// Receives are posted "early", before anything is packed, or "late", afterwards.
  std::string receives = "early";
  /// In messages; empty: "an exchange".
  std::string name{};
};

/// How an exchange is done on this rank.
struct ExchangeReport {
  std::string method;               ///< "neighbours"
  double predicted_s = 0;           ///< what a round was to take
  std::int64_t rounds = 0;          ///< that have ended
  double seconds = 0;               ///< the last one: from begin() until it was found to be over
  std::int64_t messages = 0;        ///< that this rank sends in a round
  std::int64_t bytes = 0;           ///< in them, padding included
  std::int64_t packed_bytes = 0;    ///< memory of the host and devices kept for packed elements
  std::vector<std::string> others;  ///< what else could have been taken, with its time
};

/// A round of an exchange that has begun, for streams of the node's devices. Copies are the same
/// round; it goes on when all are dropped.
///
/// Threads: any; a stream's calls are of one thread at a time.
class ExchangeRound {
 public:
  ExchangeRound(std::shared_ptr<collectives::ExchangeCore> core,
                std::shared_ptr<collectives::Operation> operation)
      : core_(std::move(core)), operation_(std::move(operation)) {}

  /// What is queued on `stream` from now on begins when the round is over: what has come can be
  /// read, and what was sent be written again. Any number of streams. Does not wait; but on a node
  /// that is alone, and in a DrivenWorld, where no thread moves messages, it does so until the
  /// round is over.
  ///
  /// When the round fails later, the stream fails with its text, and what is queued behind does not
  /// run. Throws what made the round fail, if it has failed by now: then the stream is left as it
  /// is. Throws Error(usage) for a stream of no device of this node's.
  void arrived(Stream& stream) const;

 private:
  std::shared_ptr<collectives::ExchangeCore> core_;
  std::shared_ptr<collectives::Operation> operation_;
};

/// Elements that go to and come from neighbours again and again: the halos of a grid, or the sets O
/// and R of a partitioned graph (003 sections 2.2 and 2.3), whose lists of indices are
/// Datatype::indexed_block and the like. Group::exchange() makes one.
///
/// Parts, types and memory are fixed when it is made; memory may be the host's or of any device of
/// the node, each part's its own. A round sends what is in the outgoing parts'
/// memory, which must not change until it is over, and replaces the incoming parts' elements;
/// everything beside these stays as it is. Work on other memory may go on meanwhile.
///
/// All members begin as many rounds. At most one round of an exchange is under way; rounds of
/// different exchanges, and of the group's operations, are independent of each other, and may begin
/// in another order on each rank.
///
/// Errors: a group that fails ends a round with what made the group fail, as does a lost node, and
/// throws it at every later begin(). A member that does not begin a round for
/// runtime.watchdog_seconds while another one waits for it makes the group fail.
///
/// On devices: a round without a stream begins at once, and moves what is in device memory then;
/// the program waits for its kernels before, as for wait() behind. A round on a stream begins when
/// what the stream has queued has ended. The stream itself goes on: kernels that do not touch the
/// parts run beside the round, and those that do wait for ExchangeRound::arrived().
///
/// Handles: copies are the same exchange. A round goes on when all are dropped; memory must stay
/// until it is over.
///
/// Threads: any.
class Exchange {
 public:
  explicit Exchange(std::shared_ptr<collectives::ExchangeCore> core) : core_(std::move(core)) {}

  /// Begins a round. Does not wait for others. Throws Error(usage) where one is under way.
  ExchangeRound begin() const;  // NOLINT(modernize-use-nodiscard): only streams need it
  /// The same behind what `stream` has queued; the parts may be anywhere. `stream` does not wait,
  /// and stays until the round has begun. Throws Error(usage), too, for a stream of no device of
  /// this node's.
  ExchangeRound begin(Stream& stream) const;  // NOLINT(modernize-use-nodiscard)
  /// Blocks until the round begun last is over on this rank, and throws what made it fail; without
  /// a round returns at once. Any number of times.
  void wait() const;
  /// wait() returns, or throws, at once.
  [[nodiscard]] bool done() const;
  /// begin() and wait().
  void run() const {
    begin();
    wait();
  }
  /// While no round is under way.
  [[nodiscard]] ExchangeReport report() const;

 private:
  std::shared_ptr<collectives::ExchangeCore> core_;
};

}  // namespace heddle
