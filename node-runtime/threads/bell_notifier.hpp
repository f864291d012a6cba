#pragma once

#include "base/futex.hpp"
#include "node-runtime/device/device.hpp"

namespace heddle {

/// Rings a bell from a device backend's thread.
class BellNotifier final : public Notifier {
 public:
  explicit BellNotifier(Doorbell& bell) : bell_(bell) {}
  void notify() noexcept override { bell_.ring(); }

 private:
  Doorbell& bell_;
};

}  // namespace heddle
