#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/probe/pair_report.hpp"
#include "node-runtime/transport/probe/probed_place.hpp"
#include "node-runtime/transport/probe/stopwatch.hpp"

namespace heddle {

/// This node's half of trying all ways between its places and another node's; the other node does
/// the same at the same time. The two go in step: each message is sent even after a failure, so
/// that no node waits for a path that does not work. A node closes the memory that it has mapped
/// before the other one goes on.
///
/// Thread: the one that calls MPI.
class RemoteProbe {
 public:
  /// All of them outlive it.
  RemoteProbe(const Communicator& communicator, std::int32_t other,
              const std::vector<std::unique_ptr<ProbedPlace>>& places, const ProbeOptions& options,
              std::uint64_t seed);

  /// The same reports on both nodes. Throws Error(communication) when the other node is lost; what
  /// does not work otherwise is in the reports.
  [[nodiscard]] std::vector<PairReport> run();

 private:
  /// One node's result of an attempt, as it is sent to the other.
  struct Verdict {
    std::string text;  ///< empty: it works, as far as this node can tell
    bool is_consequence = false;
    double latency_us = 0;
    double rate = 0;
  };

  [[nodiscard]] Attempt try_way(Way way, ProbedPlace& mine);
  [[nodiscard]] Attempt try_mapped(ProbedPlace& mine);
  [[nodiscard]] Verdict export_to_other(ProbedPlace& mine);
  [[nodiscard]] Verdict import_from_other(ProbedPlace& mine);
  [[nodiscard]] Attempt try_message(Way way, ProbedPlace& mine);
  void lead(Way way, ProbedPlace& mine, const ProbeRound& round, Trouble& trouble,
            Stopwatch& watch);
  void follow(Way way, ProbedPlace& mine, const ProbeRound& round, Trouble& trouble);

  /// The worse of both nodes' verdicts, the same on both.
  [[nodiscard]] Verdict agree(const Verdict& mine) const;
  [[nodiscard]] Verdict verdict_of(const Trouble& trouble) const;
  [[nodiscard]] std::string exchange(const std::string& mine) const;
  void send(const std::byte* from, std::size_t bytes) const;
  void receive(std::byte* to, std::size_t bytes) const;
  void signal() const;
  void await_signal() const;

  const Communicator& communicator_;
  const std::int32_t other_;
  const bool is_first_;  ///< of the two nodes, by number
  const std::vector<std::unique_ptr<ProbedPlace>>& places_;
  const ProbeOptions options_;
  std::uint64_t seed_;  ///< counts on in step on both
};

}  // namespace heddle
