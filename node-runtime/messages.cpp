#include "node-runtime/messages.hpp"

#include <fmt/core.h>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/transport/user_messages.hpp"

namespace heddle::messages {
namespace {

std::shared_ptr<UserMessages> of_node(const std::weak_ptr<UserMessages>& messages) {
  if (auto found = messages.lock()) return found;
  throw Error(ErrorCode::usage, "messages of a node are used, but the node has ended");
}

}  // namespace

// ---- requests --------------------------------------------------------------------------------

struct Request::State {
  std::weak_ptr<UserMessages> messages;
  p2p::Request request;
  bool was_waited_for = false;
};

Request::Request(std::unique_ptr<State> state) : state_(std::move(state)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&&) noexcept = default;
Request::~Request() = default;

bool Request::done() {
  const auto messages = state_->messages.lock();
  if (messages != nullptr && !state_->request.done()) messages->drive();
  return state_->request.done();
}

Status Request::wait() {
  if (std::exchange(state_->was_waited_for, true)) {
    throw Error(ErrorCode::usage, "a message was waited for twice");
  }
  const auto messages = state_->messages.lock();
  const p2p::Status status =
      messages == nullptr ? state_->request.wait() : messages->wait(state_->request);
  return {status.source.value(), status.tag, status.bytes, status.is_cancelled};
}

void Request::cancel() {
  if (state_->request.done()) return;
  const auto messages = of_node(state_->messages);
  state_->request.cancel();
}

// ---- device memory ---------------------------------------------------------------------------

struct DeviceMemory::State {
  State(std::weak_ptr<UserMessages> of, std::int32_t on, std::byte* begin, std::size_t size)
      : messages(std::move(of)), device(on), address(begin), bytes(size) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (const auto node = messages.lock()) node->free(device, address);
  }

  void check(std::size_t offset, std::size_t size) const {
    if (offset <= bytes && size <= bytes - offset) return;
    throw Error(ErrorCode::usage,
                fmt::format("{} bytes from byte {} on are copied, of device memory of {} bytes",
                            size, offset, bytes));
  }

  std::weak_ptr<UserMessages> messages;
  std::int32_t device;
  std::byte* address;
  std::size_t bytes;
};

DeviceMemory::DeviceMemory(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceMemory::DeviceMemory(DeviceMemory&&) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&&) noexcept = default;
DeviceMemory::~DeviceMemory() = default;

Memory DeviceMemory::all() const {
  return {state_->address, state_->bytes};
}

void DeviceMemory::write(std::span<const std::byte> from, std::size_t offset) {
  state_->check(offset, from.size());
  of_node(state_->messages)->write(state_->device, state_->address + offset, from);
}

void DeviceMemory::read(std::span<std::byte> into, std::size_t offset) const {
  state_->check(offset, into.size());
  of_node(state_->messages)->read(state_->device, state_->address + offset, into);
}

// ---- the endpoint ----------------------------------------------------------------------------

int Endpoint::size() const {
  return of_node(messages_)->nodes();
}

int Endpoint::rank() const {
  return of_node(messages_)->node();
}

int Endpoint::devices() const {
  return of_node(messages_)->devices();
}

Request Endpoint::send(ConstMemory memory, const Datatype& type, std::int64_t count, int to,
                       int tag) {
  return Request(std::make_unique<Request::State>(Request::State{
      messages_, of_node(messages_)->send({memory.address, count, type}, memory.bytes, to, tag)}));
}

Request Endpoint::receive(Memory memory, const Datatype& type, std::int64_t count, int from,
                          int tag) {
  return Request(std::make_unique<Request::State>(Request::State{
      messages_,
      of_node(messages_)->receive({memory.address, count, type}, memory.bytes, from, tag)}));
}

DeviceMemory Endpoint::allocate(int device, std::size_t bytes) {
  std::byte* const address = of_node(messages_)->allocate(device, bytes);
  return DeviceMemory(std::make_unique<DeviceMemory::State>(messages_, device, address, bytes));
}

Request Endpoint::release(const void* address) {
  return Request(std::make_unique<Request::State>(
      Request::State{messages_, of_node(messages_)->release(address)}));
}

}  // namespace heddle::messages
