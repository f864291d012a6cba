#include "node-runtime/progress/peer_watch.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace heddle {

PeerWatch::PeerWatch(Options options, std::int64_t now_ns)
    : options_(std::move(options)), awake_(now_ns) {
  HEDDLE_CHECK(options_.rank >= 0 && options_.rank < size() &&
                   options_.local_processes.size() == options_.hosts.size(),
               "node {} of {}, {} processes", options_.rank, size(),
               options_.local_processes.size());
  heard_ns_.assign(options_.hosts.size(), 0);
  for (int r = 0; r < size(); ++r) {
    const std::int32_t process = options_.local_processes[static_cast<std::size_t>(r)];
    const bool is_watched = process != 0 && r != options_.rank;
    processes_.push_back(is_watched ? std::make_unique<ProcessWatch>(process) : nullptr);
  }
}

void PeerWatch::heard(int rank, std::int64_t now_ns) {
  HEDDLE_DEBUG(rank >= 0 && rank < size(), "node {} of {}", rank, size());
  now_ns_ = awake_.at(now_ns);
  heard_ns_[static_cast<std::size_t>(rank)] = now_ns_;
}

void PeerWatch::look_at_processes() const {
  for (int r = 0; r < size(); ++r) {
    const auto& process = processes_[static_cast<std::size_t>(r)];
    if (process != nullptr && process->has_ended()) lost(r, "its process has ended");
  }
}

bool PeerWatch::look(std::int64_t now_ns) {
  now_ns_ = awake_.at(now_ns);
  if (now_ns_ - looked_ns_ < heartbeat_ns / 5) return false;
  looked_ns_ = now_ns_;
  look_at_processes();
  std::int64_t& sent = heard_ns_[static_cast<std::size_t>(options_.rank)];
  const bool is_due = now_ns_ - sent > heartbeat_ns;
  if (is_due) sent = now_ns_;
  const int watched = (options_.rank + size() - 1) % size();
  std::int64_t& heard = heard_ns_[static_cast<std::size_t>(watched)];
  if (static_cast<double>(now_ns_ - heard) * 1e-9 <= options_.silence_seconds) return is_due;
  const auto& process = processes_[static_cast<std::size_t>(watched)];
  if (process == nullptr || !process->is_stopped()) {
    lost(watched, fmt::format("it has been silent for {} s (runtime.silence_seconds)",
                              options_.silence_seconds));
  }
  heard = now_ns_;  // it was stopped, and may be let go on
  return is_due;
}

void PeerWatch::lost(int rank, const std::string& how) const {
  throw Error(ErrorCode::communication,
              fmt::format("node {} on host {} was lost: {}", rank,
                          options_.hosts[static_cast<std::size_t>(rank)], how));
}

bool PeerWatch::is_valid() const {
  return heard_ns_.size() == options_.hosts.size() &&
         std::ranges::all_of(heard_ns_, [this](std::int64_t t) { return t <= now_ns_; }) &&
         processes_[static_cast<std::size_t>(options_.rank)] == nullptr;
}

}  // namespace heddle
