#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/collectives/schedule/places.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"

namespace heddle {

class UserMessages;

/// Groups in a program that has no Node and drives an endpoint itself. The threads that wait for
/// operations move messages; operations that nobody waits for go on while any thread is in drive().
/// The program calls drive() where it would call Endpoint::progress().
///
/// Locks: mutex_ is held during Endpoint::progress(). No deadlock: requests that end take
/// UserMessages' lock and the groups' under it, and it is never taken under these: who finds it
/// taken goes on.
///
/// Threads: drive() and the groups' functions by any.
class DrivenWorld {
 public:
  struct Options {
    /// Of all nodes, the same on all of them; nothing: each is on a host of its own, and so no
    /// board is made.
    std::optional<collectives::Places> places{};
    collectives::CollectiveRates rates{};  ///< the same on all nodes
    /// Without news for as long while a thread waits, the group fails.
    std::chrono::milliseconds patience{60000};
    CollectiveOptions defaults{};  ///< of calls that do not say otherwise
    /// Of a thread that waits at a board, before it sleeps: Board::Patience.
    std::int32_t looks = 400;
    std::int32_t yields = 1000;
  };
  /// Makes the group of all nodes of the wire; node `own` is this one. The endpoint outlives this
  /// object, and its channels from UserMessages::channel on are not used otherwise. Collective.
  DrivenWorld(p2p::Endpoint& endpoint, std::int32_t own, std::int32_t nodes, Options options);
  DrivenWorld(const DrivenWorld&) = delete;
  DrivenWorld& operator=(const DrivenWorld&) = delete;
  /// Abandons nothing: end() was called, or the endpoint has been abandoned.
  ~DrivenWorld();

  [[nodiscard]] Group group() const { return Group(world_); }
  /// Moves messages, unless another thread does.
  void drive();
  /// Ends what is under way; when it returns on all nodes, no message of a group is. Collective.
  void end();

 private:
  std::mutex mutex_;
  p2p::Endpoint& endpoint_;
  std::shared_ptr<UserMessages> messages_;
  std::shared_ptr<collectives::GroupCore> world_;
};

}  // namespace heddle
