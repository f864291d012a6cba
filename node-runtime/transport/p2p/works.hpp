#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/id_table.hpp"
#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/neighbourhood.hpp"
#include "node-runtime/transport/p2p/requests.hpp"
#include "node-runtime/transport/p2p/work.hpp"

namespace heddle::p2p {

/// A work under way, or a referral: one of the two is set.
struct Work : RequestState {
  Work() : RequestState(true) {}

  std::int64_t id = 0;
  std::optional<DeviceWork> device;
  std::shared_ptr<Referral> referral;
  std::vector<std::shared_ptr<const Mappings::Use>> mappings;  ///< until it is over
};

/// Works of the endpoint's devices that are under way. Operations of lanes with negative numbers
/// are theirs.
///
/// Thread: the progress thread only.
class Works {
 public:
  Works(Lanes& lanes, Neighbourhood& neighbours, Requests& requests, NodeId own)
      : lanes_(lanes), neighbours_(neighbours), requests_(requests), own_(own) {}

  /// Queues it; a referral is over at once. A mapping that the system refuses fails it with
  /// Error(communication).
  void start(std::shared_ptr<Work> work);
  [[nodiscard]] static bool is_work(OperationId id) { return id.value() < 0; }
  void ended(OperationId id, const std::optional<std::string>& failure);
  /// One that awaits an event is over, cancelled; others end soon by themselves. False: there is no
  /// such work.
  bool cancel(std::int64_t id);
  /// The lanes have been abandoned.
  void abandon(const Error& why);

 private:
  void refer(Work& work);
  void queue(Work& work);
  /// Ends it with an error, or well.
  void end(const std::shared_ptr<Work>& work, const Error* failure, bool is_cancelled = false);

  Lanes& lanes_;
  Neighbourhood& neighbours_;
  Requests& requests_;
  NodeId own_;
  IdTable<std::shared_ptr<Work>> under_way_;
};

}  // namespace heddle::p2p
