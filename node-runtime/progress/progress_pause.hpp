#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.hpp"
#include "node-runtime/threads/engine.hpp"

namespace heddle {

/// What decides how long the progress thread pauses between two looks for messages.
struct ProgressLoad {
  WaitPolicy policy = WaitPolicy::adaptive;  ///< not spin, which never pauses
  bool shares_cores = false;                 ///< with CPU workers
  bool has_own_cores = false;                ///< that no other node on the host uses
  bool is_at_work = false;    ///< messages are in flight or expected, or jobs are active
  bool worker_waits = false;  ///< a CPU worker has nothing to do
  std::int64_t idle_ns = 0;   ///< since the last event
};

/// What the progress thread does between two looks.
struct ProgressPause {
  enum class Kind : std::uint8_t { yield, sleep };
  Kind kind = Kind::yield;
  std::int64_t sleep_us = 0;  ///< at most; a ring ends it
  bool is_wait = false;       ///< counts as waiting in the trace
  friend bool operator==(const ProgressPause&, const ProgressPause&) = default;
};

/// How long after the last event the thread keeps looking without a pause.
inline constexpr std::int64_t alert_ns = 30'000;

/// Pauses. A worker that waits for data: a share of its wait so far, within limits, so that data is
/// late by no more than that share. (Falling asleep and waking costs as much as a short pause; with
/// more nodes than cores it takes from those that compute what the others wait for.) All workers
/// compute: they ring between tasks. A core of its own that it is not to spin on. No work: quiet.
inline constexpr std::int64_t pause_share = 8;
inline constexpr std::int64_t pause_us_idle_worker = 10;
inline constexpr std::int64_t pause_us_idle_worker_max = 200;
inline constexpr std::int64_t pause_us_shared = 1000;
inline constexpr std::int64_t pause_us_parked = 100;
inline constexpr std::int64_t pause_us_quiet = 1000;

[[nodiscard]] inline ProgressPause pause_for(const ProgressLoad& load) {
  using Kind = ProgressPause::Kind;
  HEDDLE_DEBUG(load.policy != WaitPolicy::spin);
  const bool is_adaptive = load.policy == WaitPolicy::adaptive;
  if (is_adaptive && load.idle_ns < alert_ns) return {Kind::yield, 0, false};
  // With a core of its own it looks without a pause: each of the two looks that a message needs
  // would cost one. A worker that sleeps leaves a core that has nothing better to do.
  const bool is_awaited = load.worker_waits && load.is_at_work;
  const bool has_a_core = !load.shares_cores || (is_awaited && load.has_own_cores);
  if ((load.is_at_work && is_adaptive && !load.shares_cores) || (is_awaited && has_a_core)) {
    return {Kind::yield, 0, true};
  }
  if (is_awaited) {
    return {Kind::sleep,
            std::clamp(load.idle_ns / 1000 / pause_share, pause_us_idle_worker,
                       pause_us_idle_worker_max),
            true};
  }
  if (!load.is_at_work) return {Kind::sleep, pause_us_quiet, true};
  return {Kind::sleep, load.shares_cores ? pause_us_shared : pause_us_parked, true};
}

}  // namespace heddle
