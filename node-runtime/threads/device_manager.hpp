#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "node-runtime/residency/waiting_tasks.hpp"
#include "node-runtime/threads/bell_notifier.hpp"
#include "node-runtime/threads/compute_streams.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/trace/recorder.hpp"

namespace heddle {

/// The management thread of one device (001 section 5.2): takes ready tasks of the device's place,
/// requests tiles that are not in its memory, and keeps kernels in flight on its streams.
///
/// Invariant (`is_valid()`): that of the streams and of the waiting tasks;  the engine was told of
/// as many waiting tasks as there are.
///
/// No deadlock: a task holds its tiles only while its kernel is in flight, which ends, or while it
/// has arrived; arrived tasks are launched before any other (WaitingTasks::next).
///
/// Thread: one, which makes it, runs it and destroys it.
class DeviceManager {
 public:
  /// `device`: its number, from 0.
  DeviceManager(Engine& engine, std::int32_t device, trace::ThreadTrace& trace);
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;
  /// Gives up what is in flight, if the node has failed.
  ~DeviceManager();

  /// The loop; returns when the engine stops and nothing is in flight. Throws Error(internal) that
  /// names the task when the device fails.
  void run();
  /// One turn of the loop: collects, launches, requests. False: there was nothing to do.
  bool turn();

  [[nodiscard]] std::size_t in_flight() const { return streams_.in_flight(); }
  /// Tasks that lack tiles.
  [[nodiscard]] std::size_t waiting() const { return tasks_.count(); }
  [[nodiscard]] bool is_valid() const;

 private:
  void wait(Doorbell::Ticket ticket);
  void watch_oldest();
  bool collect();
  void end(StreamQueue& queue, LaunchedTask& done);
  bool launch();
  /// A task to go on with, and whether its tiles are acquired: not where its job was cancelled
  /// before. Once they are, they stay so to its end, even if the job is cancelled. Null: none.
  struct Next {
    protocol::Task* task = nullptr;
    bool is_acquired = false;
  };
  [[nodiscard]] Next next_task(std::int32_t above);
  void take_arrived();
  void report_waiting();
  bool request_ahead();
  void start(StreamQueue& queue, const Next& next);
  void launch_kernel(Stream& stream, const protocol::Task& task, std::int64_t* info);
  void report_exception(const protocol::Task& task, const Error& error);
  void report_failure(Stream& stream, const protocol::Task& task, std::int64_t info);

  Engine& engine_;
  const EngineOptions& options_;
  TileStore& store_;
  PlaceId place_;
  Device& device_;
  Doorbell& bell_;
  BellNotifier notifier_;
  DeviceCache& cache_;
  trace::ThreadTrace& trace_;
  ComputeStreams streams_;
  WaitingTasks tasks_;
  std::size_t ready_left_ = 0;         ///< ready tasks that nobody had taken at the last look
  std::int32_t reported_waiting_ = 0;  ///< to the engine
};

}  // namespace heddle
