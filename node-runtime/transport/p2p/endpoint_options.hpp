#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "node-runtime/transport/p2p/lanes.hpp"
#include "node-runtime/transport/p2p/matching.hpp"
#include "node-runtime/transport/p2p/path.hpp"
#include "node-runtime/transport/p2p/report.hpp"

namespace heddle::p2p {

struct EndpointOptions {
  std::int64_t eager_bytes_max = 8192;
  /// For the unexpected messages of each peer.
  std::int64_t eager_memory_bytes = std::int64_t{256} << 10U;
  std::int32_t out_slots = 8;
  std::int32_t in_slots = 16;  ///< each slot has sizes.piece_bytes, as those of out_slots
  std::int32_t requests_max = 4096;
  /// For expected messages; more of these are announced. The wire looks at each in every poll.
  std::int32_t posted_pieces_max = 1024;
  PathSizes sizes;
  std::int32_t ring_slots = 8;  ///< on each device for what comes, and as many for what leaves
  std::int32_t mappings_max = 256;
  PathRates rates;
  std::optional<Path> path;  ///< taken wherever it can be
  /// Work of several processes on one GPU runs in turns: no Multi-Process Service.
  bool processes_take_turns = true;
  Lanes::Options lanes;
  std::function<void(const MessageReport&)> report;  ///< called for received messages; may be null
  std::function<void(const FragmentReport&)> fragment;  ///< may be null
  /// Called for an unexpected message; may post a receive. Thread: the progress thread.
  std::function<void(const Envelope&)> unexpected;

  /// Called with the words of other nodes (Endpoint::tell, expect), in the order in which a node
  /// has told them; their bytes are there until it returns. Without it, none may come. Thread:
  /// likewise.
  std::function<void(NodeId, std::span<const std::byte>)> word;

  /// Bytes that the wire's window should have.
  [[nodiscard]] std::size_t window_bytes() const {
    return static_cast<std::size_t>(in_slots) * static_cast<std::size_t>(sizes.piece_bytes);
  }
};

}  // namespace heddle::p2p
