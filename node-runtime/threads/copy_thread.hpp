#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "node-runtime/threads/bell_notifier.hpp"
#include "node-runtime/threads/copy_lane.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle {

/// The copy thread of a node (001 section 5.3): moves tiles between the host and the devices, and
/// between devices' memory and what backs it, by an in and an out lane for each device.
///
/// Invariant (`is_valid()`): that of each lane;  active = flights that are not free.
///
/// No deadlock: transfers wait for nothing; copies acquire their ends in the order of devices, and
/// a copy that holds one end waits for space of the other device, whose holders release without
/// waiting for copies (Residency counts those that do: least_device_bytes).
///
/// Thread: one, which makes it, runs it and destroys it.
class CopyThread {
 public:
  CopyThread(Engine& engine, trace::ThreadTrace& trace);
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;
  /// Gives up what is in flight, if the node has failed.
  ~CopyThread();

  /// The loop; returns when the engine stops and nothing is in flight. Throws Error(internal) when
  /// a copy fails.
  void run();
  /// One turn of the loop. False: there was nothing to do.
  bool turn();

  /// Copies and transfers in flight, or waiting for their tiles.
  [[nodiscard]] std::size_t active() const { return active_; }
  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] bool is_at_rest() const;
  void wait(Doorbell::Ticket ticket);
  void sort_mail();
  bool collect();
  void finish(CopyLane& lane, CopyFlight& flight, std::vector<protocol::CopyAction>& finished);
  bool post();
  void begin_transfer(CopyLane& lane, CopyFlight& flight);
  void begin_copy(CopyLane& lane, CopyFlight& flight);
  void add_end(CopyFlight& flight, PlaceId place, protocol::BlockRef block,
               protocol::AccessMode mode);
  void acquire(CopyLane& lane, CopyFlight& flight);
  bool advance_acquired();
  void start(CopyLane& lane, CopyFlight& flight);
  void copy_through_host(CopyLane& lane, CopyFlight& flight, const Destination& to,
                         const Source& from);
  void record(const CopyLane& lane, const CopyFlight& flight, std::int64_t start_ns,
              std::int64_t end_ns);

  [[nodiscard]] CopyLane& lane_of(const CopyRoute& route);
  [[nodiscard]] PlaceId place_of(const CopyLane& lane) const;
  [[nodiscard]] Device* device_of(PlaceId place) const;
  [[nodiscard]] bool reaches(PlaceId a, PlaceId b) const;

  Engine& engine_;
  const EngineOptions& options_;
  TileStore& store_;
  Doorbell& bell_;
  BellNotifier notifier_;
  trace::ThreadTrace& trace_;
  std::deque<CopyLane> lanes_;  ///< two for each device: in, out; they do not move
  std::vector<bool> reaches_;   ///< by device and device: copies go straight
  std::size_t active_ = 0;      ///< flights that are not free
  bool polls_ = false;
};

}  // namespace heddle
