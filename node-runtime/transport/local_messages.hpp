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

/// A program's messages to itself on a single node. The threads that wait for messages move them.
///
/// Locks: mutex_ guards the wire and the endpoint's progress(). No deadlock: a request that ends
/// takes UserMessages' lock under mutex_, and mutex_ is never taken under that lock.
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
  /// Moves messages, unless another thread is doing so.
  void drive();

  std::mutex mutex_;
  p2p::LocalWire wire_;
  p2p::Endpoint endpoint_;
  std::shared_ptr<UserMessages> user_messages_;
};

}  // namespace heddle
