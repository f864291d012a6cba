#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/probe/pair_report.hpp"
#include "node-runtime/transport/probe/probed_place.hpp"

namespace heddle {

/// Tries the ways between all places of all nodes, at start-up or for `heddle doctor`. Everything
/// is bounded in time: an operation of a device that does not end makes its way fail, a node that
/// does not answer is Error(communication).
///
/// Takes `timed_bytes` of each device, and twice as much of the host's memory for each of its
/// places, until it is destroyed. Thread: the one that calls MPI then.
class TransportProbe {
 public:
  /// Both outlive it.
  TransportProbe(const Communicator& communicator,
                 const std::vector<std::unique_ptr<Device>>& devices, const ProbeOptions& options);
  TransportProbe(const TransportProbe&) = delete;
  TransportProbe& operator=(const TransportProbe&) = delete;
  ~TransportProbe();

  /// The pairs of places that this node has a part in: those within it, then those with each other
  /// node; each of the latter is on both nodes. Collective. `tell` is called before each round,
  /// with its number from 0 and how many there are.
  [[nodiscard]] std::vector<PairReport> run(
      const std::function<void(std::size_t round, std::size_t rounds)>& tell = {});

 private:
  const Communicator& communicator_;
  const ProbeOptions options_;
  std::vector<std::unique_ptr<ProbedPlace>> places_;  ///< the host, then each device
};

}  // namespace heddle
