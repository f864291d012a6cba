#include "node-runtime/transport/local_messages.hpp"

#include <sched.h>

#include "node-runtime/transport/endpoint_sizes.hpp"

namespace heddle {
namespace {

std::span<Device* const> used(std::span<Device* const> devices, std::size_t device_bytes) {
  return device_bytes == 0 ? std::span<Device* const>() : devices;
}

p2p::EndpointOptions options_for(std::span<Device* const> devices) {
  p2p::EndpointOptions options;
  options.ring_slots = 0;
  if (devices.empty()) return options;
  EndpointSizes::for_device(devices.front()->info().memory_bytes, false).apply_to(options);
  return options;
}

}  // namespace

LocalMessages::LocalMessages(std::span<Device* const> devices, std::size_t device_bytes)
    : endpoint_(
          wire_, options_for(used(devices, device_bytes)), [] {}, used(devices, device_bytes)),
      user_messages_(std::make_shared<UserMessages>(
          endpoint_, 0, 1, devices,
          UserMessages::Options{device_bytes, device_bytes > 0, [this] { drive(); }})) {}

LocalMessages::~LocalMessages() {
  user_messages_->end();
  user_messages_.reset();
  endpoint_.drop_arrivals(UserMessages::channel);
  endpoint_.close();
  while (!endpoint_.is_closed() || !endpoint_.is_idle()) drive();
}

void LocalMessages::drive() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) {
    if (user_messages_ != nullptr) user_messages_->free_left_scratch();
    if (endpoint_.progress()) return;
  }
  ::sched_yield();
}

}  // namespace heddle
