#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "node-runtime/device/emulated/emulated_device.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "tests/transport/p2p/simulated_wire.hpp"

namespace heddle::p2p {

inline constexpr ChannelId channel{0};

/// Small, so that a few hundred bytes take every way.
inline Endpoint::Options small_options() {
  Endpoint::Options options;
  options.eager_bytes_max = 100;
  options.eager_memory_bytes = 500;
  options.out_slots = 2;
  options.in_slots = 3;
  options.requests_max = 1000;
  options.sizes.piece_bytes = 128;
  options.sizes.read_piece_bytes = 200;
  options.sizes.pieces_ahead = 2;
  options.sizes.shared_pieces = 4;
  options.sizes.shared_piece_bytes_min = 100;
  options.sizes.ring_piece_bytes = 256;
  options.sizes.ring_slots = 2;
  options.sizes.ring_pieces = 4;
  options.sizes.ring_piece_bytes_min = 100;
  options.ring_slots = 3;
  options.lanes.packer = {.cache_bytes = 4096, .chunk_units = 64, .chunks = 2};
  return options;
}

/// Devices of nodes that are one process reach each other as peers. Refuses what a test wants it
/// to, and counts.
class ProcessMapper final : public Mapper {
 public:
  explicit ProcessMapper(const std::vector<std::unique_ptr<Device>>& devices) : devices_(devices) {}

  [[nodiscard]] MappedMemory open(Device& via, const MemoryReference& memory) override {
    if (refuses) throw Error(ErrorCode::communication, "mappings are refused here");
    const auto owner = std::ranges::find_if(
        devices_, [&](const auto& device) { return device->info().uuid == memory.handle.device; });
    if (owner == devices_.end() || !via.can_access_peer(**owner)) {
      throw Error(ErrorCode::communication, "no such device");
    }
    ++open_count;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one, in this process
    auto* const place = reinterpret_cast<std::byte*>(memory.address);
    return {place - memory.offset, owner->get()};
  }
  void close(Device&, const MappedMemory&) override { --open_count; }

  bool refuses = false;
  std::int32_t open_count = 0;

 private:
  const std::vector<std::unique_ptr<Device>>& devices_;
};

/// Some nodes and what lies between them.
class Cluster {
 public:
  struct Devices {
    std::int32_t per_node = 0;
    EmulatedOptions emulated;
    std::int32_t refusing_node = -1;  ///< cannot map others' memory
    std::int32_t bare_node = -1;      ///< has none
  };
  Cluster(std::int32_t nodes, std::uint64_t seed,
          const Endpoint::Options& options = small_options())
      : Cluster(nodes, seed, options, Devices{}) {}
  Cluster(std::int32_t nodes, std::uint64_t seed, const Endpoint::Options& options,
          const Devices& wanted)
      : net_(nodes, seed,
             {.window_bytes = seed % 2 == 0 ? options.window_bytes() : 0,
              .is_one_host = seed % 4 == 0 || wanted.per_node > 0,
              .reads = seed % 3 != 0,
              .reads_max = seed % 5 == 0 ? 0 : std::numeric_limits<std::int64_t>::max()}),
        random_(seed + 1),
        per_node_(wanted.per_node) {
    for (std::int32_t i = 0; i < nodes * per_node_; ++i) {
      EmulatedOptions emulated = wanted.emulated;
      emulated.faults.seed = seed + static_cast<std::uint64_t>(i);
      devices_.push_back(std::make_unique<EmulatedDevice>(i, emulated));
    }
    for (std::int32_t node = 0; node < nodes; ++node) {
      mappers_.push_back(std::make_unique<ProcessMapper>(devices_));
      mappers_.back()->refuses = node == wanted.refusing_node;
      std::vector<Device*> own;
      own.reserve(static_cast<std::size_t>(per_node_));
      for (std::int32_t i = 0; i < per_node_ && node != wanted.bare_node; ++i) {
        own.push_back(&device(node, i));
      }
      endpoints_.push_back(std::make_unique<Endpoint>(
          net_.wire(NodeId{node}), options, [] {}, own, mappers_.back().get()));
    }
  }

  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  /// A test that has failed leaves things behind.
  ~Cluster() {
    for (const auto& endpoint : endpoints_) {
      const bool is_left = endpoint != nullptr && per_node_ > 0 && !endpoint->is_closed();
      if (is_left) endpoint->abandon(Error(ErrorCode::internal, "the test is over"));
    }
  }

  [[nodiscard]] Endpoint& at(std::int32_t node) {
    return *endpoints_[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] Device& device(std::int32_t node, std::int32_t index) {
    return *devices_[static_cast<std::size_t>(node) * static_cast<std::size_t>(per_node_) +
                     static_cast<std::size_t>(index)];
  }
  [[nodiscard]] ProcessMapper& mapper(std::int32_t node) {
    return *mappers_[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] SimulatedNet& net() { return net_; }

  /// One thing happens.
  void step() {
    net_.step();
    const std::size_t node = random_() % endpoints_.size();
    if (endpoints_[node] != nullptr) endpoints_[node]->progress();
  }
  /// Steps until `done`, or so many that it never will be. Devices take their own time.
  template <class Done>
  [[nodiscard]] bool run_until(const Done& done) {
    // Devices' own threads may have to wait for cores that others have.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(400);
    for (int steps = 0; steps < 200'000 || per_node_ > 0; ++steps) {
      if (done()) return true;
      step();
      if (per_node_ > 0 && steps % 64 == 0) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() > end) return false;
      }
    }
    return false;
  }
  /// The node is gone, and its endpoint with it.
  void lose(std::int32_t node) {
    net_.lose(NodeId{node});
    at(node).abandon(Error(ErrorCode::communication, "this node is lost"));
    endpoints_[static_cast<std::size_t>(node)].reset();
  }
  [[nodiscard]] bool is_idle() const {
    return net_.is_quiet() && std::ranges::all_of(endpoints_, [](const auto& endpoint) {
             return endpoint == nullptr || endpoint->is_idle();
           });
  }
  /// All close what they have mapped.
  [[nodiscard]] bool close() {
    for (const auto& endpoint : endpoints_) {
      if (endpoint != nullptr) endpoint->close();
    }
    return run_until([&] {
      return is_idle() && std::ranges::all_of(endpoints_, [](const auto& endpoint) {
               return endpoint == nullptr || endpoint->is_closed();
             });
    });
  }

 private:
  SimulatedNet net_;
  std::mt19937_64 random_;
  std::int32_t per_node_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<ProcessMapper>> mappers_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

inline std::string error_of(const Request& request) {
  try {
    static_cast<void>(request.wait());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace heddle::p2p
