#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "node-runtime/transport/datatype/datatype.hpp"

namespace heddle {
class UserMessages;
}

/// Point-to-point messages of a program between its nodes, beside jobs: elements of any Datatype,
/// from host or device memory of one node to host or device memory of another or of the same. They
/// have MPI's meaning of source, tag, order, matching datatypes and truncation, and travel as tiles
/// do: without a detour through host memory where devices access each other's.
///
/// Node::messages() gives the endpoint. apps/examples/triangle_messages.cpp shows how to use it.
///
/// Errors: a wrong call throws Error(usage) with the values. What goes wrong later is thrown by
/// Request::wait(): Error(usage) where sender and receiver do not fit, Error(communication) where a
/// node is lost, any node has failed, or this node has ended.
///
/// Threads: every function of these classes may be called by any thread, of one Request by one at a
/// time. On several nodes the node's own thread moves messages; on a single node they move while
/// some thread is in Request::wait() or done().
namespace heddle::messages {

inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;

/// Memory that a message is sent from, on the host or on a device of the node.
struct ConstMemory {
  const void* address = nullptr;
  std::size_t bytes = 0;

  ConstMemory(const void* begin, std::size_t size) : address(begin), bytes(size) {}
  template <class Element, std::size_t extent>
  ConstMemory(std::span<Element, extent> elements)  // NOLINT(google-explicit-constructor)
      : address(elements.data()), bytes(elements.size_bytes()) {}
};

/// Memory that a message is received into, likewise.
struct Memory {
  void* address = nullptr;
  std::size_t bytes = 0;

  Memory(void* begin, std::size_t size) : address(begin), bytes(size) {}
  template <class Element, std::size_t extent>
  Memory(std::span<Element, extent> elements)  // NOLINT(google-explicit-constructor)
      : address(elements.data()), bytes(elements.size_bytes()) {}
  operator ConstMemory() const { return {address, bytes}; }  // NOLINT(google-explicit-constructor)
};

/// How a send or a receive has ended.
struct Status {
  int source = 0;
  int tag = 0;
  std::int64_t bytes = 0;
  bool is_cancelled = false;
};

/// A send or a receive under way. Its memory must stay, and a sent message unchanged, until it is
/// over. A handle that is dropped leaves its message to go on.
class Request {
 public:
  struct State;

  explicit Request(std::unique_ptr<State> state);
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();

  /// The message is over: wait() returns, or throws, at once.
  [[nodiscard]] bool done();
  /// Blocks until the message is over. Once: throws Error(usage) when it is called again.
  Status wait();
  /// Takes the message back if no receive, or no message, has been found for it; wait() says
  /// whether. It is over soon in any case.
  void cancel();

 private:
  std::unique_ptr<State> state_;
};

/// Memory of one of the node's devices, for messages and for the program's own kernels; freed with
/// this handle, when no message uses it.
class DeviceMemory {
 public:
  struct State;

  explicit DeviceMemory(std::unique_ptr<State> state);
  DeviceMemory(DeviceMemory&&) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  /// All of it: where messages are sent from and received into. Only the device accesses it.
  [[nodiscard]] Memory all() const;
  [[nodiscard]] std::size_t bytes() const { return all().bytes; }
  /// Copies from or to host memory; returns when that is done. Throws Error(usage) for a range that
  /// reaches outside, or when the node has ended.
  void write(std::span<const std::byte> from, std::size_t offset = 0);
  void read(std::span<std::byte> into, std::size_t offset = 0) const;

 private:
  std::unique_ptr<State> state_;
};

/// This node's end of its program's messages. Cheap to copy; all copies are the same end. Calls
/// throw Error(usage) once the node has ended.
class Endpoint {
 public:
  explicit Endpoint(std::weak_ptr<UserMessages> messages) : messages_(std::move(messages)) {}

  /// Nodes, and this one's number.
  [[nodiscard]] int size() const;
  [[nodiscard]] int rank() const;
  /// Devices of this node.
  [[nodiscard]] int devices() const;

  /// Starts to send `count` elements of `type`, the first at the begin of `memory`. Throws
  /// Error(usage) for a node that is not there, a negative tag or count, and elements that reach
  /// outside `memory`.
  [[nodiscard]] Request send(ConstMemory memory, const Datatype& type, std::int64_t count, int to,
                             int tag);
  /// Starts to receive a message of at most `count` elements of `type` that `from`, or any_source,
  /// has sent with `tag`, or any_tag. Throws like send, and for types whose elements overlap.
  [[nodiscard]] Request receive(Memory memory, const Datatype& type, std::int64_t count, int from,
                                int tag);

  /// Memory of a device, of what `runtime.messages.device_memory` sets aside. Throws Error(usage)
  /// where the device is not there or has too little left.
  [[nodiscard]] DeviceMemory allocate(int device, std::size_t bytes);
  /// For a program's own device memory (cudaMalloc) that was used in messages: makes other nodes
  /// let go of it. It can be freed when the request is over.
  [[nodiscard]] Request release(const void* address);

 private:
  std::weak_ptr<UserMessages> messages_;
};

}  // namespace heddle::messages
