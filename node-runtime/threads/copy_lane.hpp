#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/memory/device_cache.hpp"
#include "node-runtime/protocol/actions.hpp"

namespace heddle {

/// One copy in flight: of a tile from place to place, or between a device's memory and the backing.
struct CopyFlight {
  enum class State : std::uint8_t { free, acquiring, running };
  State state = State::free;
  bool is_transfer = false;
  protocol::CopyAction copy;
  DeviceCache::Transfer transfer;
  /// The devices' ends of a tile's copy. All copies acquire them in the order of the devices, so
  /// that two cannot wait for each other's.
  struct End {
    PlaceId place;
    DeviceCache::Use use;
  };
  std::array<End, 2> ends;
  std::size_t end_count = 0;
  std::size_t acquired = 0;  ///< ends
  std::unique_ptr<Event> event;
  std::unique_ptr<Event> relayed;  ///< of the source device, for a copy through the host
  std::byte* relay = nullptr;      ///< memory for that
  std::size_t relay_bytes = 0;
  std::int64_t posted_ns = 0;
  std::uint64_t order = 0;  ///< in its stream

  /// Adds an end; at most two.
  void add_end(const End& end);
  /// Sorts the ends by device.
  void order_ends();
};

/// Where a copy goes: in to a device by that device's lane, out to the host by the source's.
struct CopyRoute {
  PlaceId device;
  bool is_in = false;
};
[[nodiscard]] CopyRoute route_of(const protocol::CopyAction& copy);

/// One direction of one device: its mailbox and its stream (001 section 5.3).
///
/// Copies of tiles and transfers have flights of their own: copies may wait for transfers, in this
/// very stream too, so they take no flight from them.
///
/// Invariant (`is_valid()`):
///   the mailbox is a heap by priority
///   over running flights f: order(f) < posted, all orders differ, posted_ns grows with the order
///   transfers' flights are transfers or free, the others are none
///   a flight that acquires or runs has acquired <= end_count <= 2 ends, in the order of devices; a
///     running one has acquired all
///
/// Capacity: the mailbox is bounded by the blocks of the jobs' pools, `transfers` by the blocks of
/// the device.
///
/// Thread: the copy thread. Flights stay where they are: requests name them.
class CopyLane {
 public:
  /// Copies of tiles that the stream holds at a time; the others wait in the mailbox, where urgent
  /// ones overtake. As many transfers beside them.
  static constexpr std::size_t in_flight_max = 2;

  CopyLane(Device& device, DeviceCache& cache, Notifier* notifier);
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;
  /// After close() of all lanes: frees the relays.
  ~CopyLane();
  /// Ends the stream, which may still write to a relay of another lane.
  void close() { stream_.reset(); }

  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] DeviceCache& cache() const { return cache_; }
  [[nodiscard]] Stream& stream() { return *stream_; }

  // ---- what is to do --------------------------------------------------------------------------
  void add(const protocol::CopyAction& copy);
  void add(const DeviceCache::Transfer& transfer);
  [[nodiscard]] bool has_copies() const { return !mailbox_.empty(); }
  [[nodiscard]] bool has_transfers() const { return !transfers_.empty(); }
  /// Takes the most urgent copy of the mailbox, which is not empty.
  [[nodiscard]] protocol::CopyAction take_copy();
  /// Takes the most urgent transfer, of equal ones the first; there is one. Transfers go first:
  /// tasks that have been chosen already wait for them.
  [[nodiscard]] DeviceCache::Transfer take_transfer();

  // ---- what is in flight ----------------------------------------------------------------------
  [[nodiscard]] std::span<CopyFlight> flights() { return flights_; }
  /// A free flight for a copy, or for a transfer; null: all are in use.
  [[nodiscard]] CopyFlight* free_copy_flight() { return free_of(of_copies()); }
  [[nodiscard]] CopyFlight* free_transfer_flight() { return free_of(of_transfers()); }
  /// The flight is posted to the stream next.
  void mark_running(CopyFlight& flight, std::int64_t now_ns);
  /// The running flight that the stream executes now or next; null without one.
  [[nodiscard]] CopyFlight* oldest();
  [[nodiscard]] bool has_running() const;
  /// Flights that are not free.
  [[nodiscard]] std::size_t active() const;
  /// Ends the oldest flight, whose copy ended at `end_ns`; when it began: at its posting, or when
  /// the stream became free.
  std::int64_t finish(CopyFlight& flight, std::int64_t end_ns);
  /// Memory of the host for a copy through it; at least `bytes`.
  [[nodiscard]] std::byte* relay_of(CopyFlight& flight, std::size_t bytes);

  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] std::span<CopyFlight> of_copies() {
    return std::span(flights_).first(in_flight_max);
  }
  [[nodiscard]] std::span<CopyFlight> of_transfers() {
    return std::span(flights_).last(in_flight_max);
  }
  [[nodiscard]] static CopyFlight* free_of(std::span<CopyFlight> flights);

  Device& device_;
  DeviceCache& cache_;
  std::unique_ptr<Stream> stream_;
  std::vector<protocol::CopyAction> mailbox_;  ///< a heap by priority
  std::vector<DeviceCache::Transfer> transfers_;
  std::array<CopyFlight, 2 * in_flight_max> flights_;  ///< of copies, then of transfers
  std::uint64_t posted_ = 0;
  std::int64_t free_since_ns_ = 0;  ///< end of the last finished copy
};

}  // namespace heddle
