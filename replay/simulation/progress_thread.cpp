#include "replay/simulation/progress_thread.hpp"

#include <algorithm>
#include <utility>

namespace heddle::replay {
namespace {

// As in the runtime (progress/progress_pause.hpp).
constexpr std::int64_t alert_ns = 30'000;            ///< keeps polling after the last event
constexpr std::int64_t shared_pause_ns = 1'000'000;  ///< between polls on a shared core

}  // namespace

bool ProgressThread::is_looking() const {
  if (!idle_.empty()) return true;
  if (world_.machine.shares_cores()) return false;
  return world_.machine.pause_s <= 0 || world_.now_ns < free_ns_ + alert_ns;
}

void ProgressThread::posted(const ProgressRequest& request) {
  if (world_.machine.shares_cores() && !is_looking()) return wait(request);
  serve(request);
  serve_all();
}

void ProgressThread::arrives(const ProgressRequest& request) {
  if (is_looking()) return serve(request);
  wait(request);
}

/// Until a poll, which is without effect if the thread is woken earlier.
void ProgressThread::wait(const ProgressRequest& request) {
  waiting_.push_back(request);
  if (next_look_ns_) return;
  const bool is_shared = world_.machine.shares_cores();
  const std::int64_t pause = is_shared ? shared_pause_ns : ns_of(world_.machine.pause_s);
  const std::int64_t first = free_ns_ + alert_ns;
  const std::int64_t pauses = (std::max(world_.now_ns, first) - first) / pause + 1;
  next_look_ns_ = first + pauses * pause;
  world_.post(Event::Kind::progress_looks, *next_look_ns_, 0, node_);
}

void ProgressThread::looks() {
  next_look_ns_.reset();
  serve_all();
}

void ProgressThread::serve(const ProgressRequest& request) {
  trace_.progress_waited(free_ns_, world_.now_ns);
  free_ns_ = std::max(world_.now_ns, free_ns_) + ns_of(request.seconds);
  totals_.messages_s += request.seconds + request.reading_s;
  std::int64_t end_ns = free_ns_;
  if (request.reading_s > 0) {
    // On a shared core in pieces, as both ends poll.
    const bool is_shared = world_.machine.shares_cores();
    std::int64_t& reads_end_ns = is_shared ? reading_free_ns_ : free_ns_;
    end_ns = reads_end_ns = std::max(reads_end_ns, free_ns_) + ns_of(request.reading_s);
    if (is_shared && idle_.empty()) reading_on_cores_ns_ += ns_of(request.reading_s);
  }
  const std::int64_t event_ns =
      request.known_ns ? std::max(world_.now_ns, *request.known_ns) : end_ns + request.later_ns;
  world_.events.push(event_ns, request.event);
}

void ProgressThread::serve_all() {
  for (const ProgressRequest& request : waiting_) serve(request);
  waiting_.clear();
}

std::int64_t ProgressThread::take_core() {
  const std::int64_t look =
      ns_of(world_.machine.look_s) + std::exchange(reading_on_cores_ns_, std::int64_t{0});
  return std::max(world_.now_ns, free_ns_) + look;
}

}  // namespace heddle::replay
