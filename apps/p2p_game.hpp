#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mpi.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/host_pages.hpp"

namespace heddle {

/// A message's two shapes, in memory of `elements` doubles.
struct P2pShape {
  std::string name;
  Datatype leading;    ///< on the node that is first
  Datatype following;  ///< on the other one
  std::int64_t elements = 0;

  [[nodiscard]] std::int64_t bytes() const { return leading.size(); }
};

/// Where a node has its memory.
struct P2pPlace {
  Device* device = nullptr;     ///< null: on the host
  Device* locked_by = nullptr;  ///< host memory that this device has page-locked
};

/// One node's half of messages to and fro between two nodes, and of what they are compared with.
///
/// Thread: the one that calls MPI. All functions but the constructor are collective over both.
class P2pGame {
 public:
  /// `communicator` has the two nodes. All outlive it.
  P2pGame(MPI_Comm communicator, p2p::Endpoint& endpoint, const P2pPlace& place,
          const P2pShape& shape);
  P2pGame(const P2pGame&) = delete;
  P2pGame& operator=(const P2pGame&) = delete;
  /// After close().
  ~P2pGame();

  /// Every byte comes to its place in both directions, and no other is touched.
  [[nodiscard]] bool is_right();
  /// Seconds of one message, one way; so many to and fro.
  [[nodiscard]] double play(int rounds);
  /// Seconds for each of many messages, of which `window` are under way at a time; the mean of both
  /// directions.
  [[nodiscard]] double stream(int messages, int window);
  /// Likewise what the hardware takes for as many contiguous bytes, without any message: a copy of
  /// memory that is mapped, or to the device from the host, until the host sees its end; between
  /// hosts MPI's own messages. Between devices raw() copies to and fro, as messages go: what was
  /// written just before is read more slowly than what lies in the caches unchanged. Nothing where
  /// the memory cannot be mapped.
  [[nodiscard]] std::optional<double> raw(int rounds);
  [[nodiscard]] std::optional<double> raw_stream(int messages, int window);
  /// What these are.
  [[nodiscard]] std::string raw_name() const;
  /// That the last message took.
  [[nodiscard]] p2p::Path path() const { return path_; }

  /// Drives the endpoint until both have come here.
  void meet();
  /// At the end: nobody has the other's memory mapped any more.
  void close();

 private:
  class Mapped;

  [[nodiscard]] const Datatype& type() const {
    return rank_ == 0 ? shape_.leading : shape_.following;
  }
  [[nodiscard]] p2p::Request begin(bool sends);
  void finish(const p2p::Request& request);
  void transfer(bool sends);
  void load(const std::vector<double>& image);
  [[nodiscard]] std::vector<double> content() const;
  void map();
  [[nodiscard]] bool is_between_hosts() const { return device_ == nullptr && !peer_has_device_; }
  void messages_of_mpi(bool sends, int messages, int window);
  [[nodiscard]] std::optional<double> raw_copies(int copies, int window, bool to_and_fro);
  void copies(int copies, int window, bool to_and_fro);
  template <class Half>
  [[nodiscard]] double both_ways(const Half& half);

  MPI_Comm communicator_;
  int rank_ = 0;
  p2p::Endpoint& endpoint_;
  Device* device_;
  Device* locked_by_;
  bool peer_has_device_ = false;
  const P2pShape& shape_;
  p2p::HostPages pages_;
  std::span<double> host_;              ///< the memory, on the host
  std::optional<DeviceBuffer> memory_;  ///< likewise, on a device
  p2p::Outgoing outgoing_;              ///< all of it
  p2p::Incoming incoming_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Event>> events_;
  std::unique_ptr<Mapped> mapped_;
  bool was_mapping_tried_ = false;
  p2p::Path path_ = p2p::Path::eager;
};

}  // namespace heddle
