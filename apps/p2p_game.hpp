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

/// The two datatypes of a message, in memory of `elements` doubles.
struct P2pShape {
  std::string name;
  Datatype leading;    ///< on the first node
  Datatype following;  ///< on the second node
  std::int64_t elements = 0;

  [[nodiscard]] std::int64_t bytes() const { return leading.size(); }
};

/// Location of a node's memory.
struct P2pPlace {
  Device* device = nullptr;     ///< null: on the host
  Device* locked_by = nullptr;  ///< device that has page-locked the host memory
};

/// One node's half of a ping-pong benchmark between two nodes, with reference figures.
///
/// Thread: the one that calls MPI. All functions but the constructor are collective over both
/// nodes.
class P2pGame {
 public:
  /// `communicator` has the two nodes. All arguments must outlive it.
  P2pGame(MPI_Comm communicator, p2p::Endpoint& endpoint, const P2pPlace& place,
          const P2pShape& shape);
  P2pGame(const P2pGame&) = delete;
  P2pGame& operator=(const P2pGame&) = delete;
  /// Call close() before.
  ~P2pGame();

  /// Whether every byte arrives in both directions and no other is touched.
  [[nodiscard]] bool is_right();
  /// Seconds per message, one way, over `rounds` round trips.
  [[nodiscard]] double play(int rounds);
  /// Seconds per message with `window` messages in flight; mean of both directions.
  [[nodiscard]] double stream(int messages, int window);
  /// As play(), for a plain contiguous copy of the same size: of mapped memory, or between host and
  /// device including the host's wait; between hosts MPI's own messages. Between devices it copies
  /// back and forth, as messages go: freshly written data is read more slowly than unchanged cached
  /// data. Nothing if the memory cannot be mapped.
  [[nodiscard]] std::optional<double> raw(int rounds);
  [[nodiscard]] std::optional<double> raw_stream(int messages, int window);
  /// Describes the raw copies.
  [[nodiscard]] std::string raw_name() const;
  /// Path of the last message.
  [[nodiscard]] p2p::Path path() const { return path_; }

  /// Barrier that drives the endpoint meanwhile.
  void meet();
  /// At the end: unmaps the other node's memory on both nodes.
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
  std::span<double> host_;              ///< memory on the host
  std::optional<DeviceBuffer> memory_;  ///< memory on a device
  p2p::Outgoing outgoing_;              ///< all of it
  p2p::Incoming incoming_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Event>> events_;
  std::unique_ptr<Mapped> mapped_;
  bool was_mapping_tried_ = false;
  p2p::Path path_ = p2p::Path::eager;
};

}  // namespace heddle
