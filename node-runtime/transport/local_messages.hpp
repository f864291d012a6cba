#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/local_wire.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle {

/// A program's messages on a node that has no other ones. No thread moves them but those that wait.
///
/// Who guards what: mutex_ guards the wire and the endpoint's progress(). No deadlock: under mutex_
/// only UserMessages' lock is taken, by a request that ends, and never the other way round.
class LocalMessages {
 public:
  /// `device_bytes` of each device are set aside now; 0: messages stay on the host.
  LocalMessages(std::span<Device* const> devices, std::size_t device_bytes);
  LocalMessages(const LocalMessages&) = delete;
  LocalMessages& operator=(const LocalMessages&) = delete;
  /// Ends the program's messages.
  ~LocalMessages();

  [[nodiscard]] const std::shared_ptr<UserMessages>& user_messages() const {
    return user_messages_;
  }

 private:
  /// Does what can be done now, or lets another thread do it.
  void drive();

  std::mutex mutex_;
  p2p::LocalWire wire_;
  p2p::Endpoint endpoint_;
  std::shared_ptr<UserMessages> user_messages_;
};

}  // namespace heddle
