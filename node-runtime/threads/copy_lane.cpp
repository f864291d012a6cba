#include "node-runtime/threads/copy_lane.hpp"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

bool is_less_urgent(const protocol::CopyAction& a, const protocol::CopyAction& b) {
  return a.priority < b.priority;
}

}  // namespace

CopyRoute route_of(const protocol::CopyAction& copy) {
  HEDDLE_CHECK(copy.from_place != copy.to_place, "a copy from place {} to itself",
               copy.from_place.value());
  const bool is_in = copy.to_place != host_place;
  return {is_in ? copy.to_place : copy.from_place, is_in};
}

void CopyFlight::add_end(const End& end) {
  HEDDLE_CHECK(end_count < ends.size(), "a copy with {} ends", end_count);
  ends[end_count++] = end;
}

void CopyFlight::order_ends() {
  if (end_count == 2 && ends[1].place < ends[0].place) std::swap(ends[0], ends[1]);
}

CopyLane::CopyLane(Device& device, DeviceCache& cache, Notifier* notifier)
    : device_(device),
      cache_(cache),
      stream_(device.create_stream(StreamPriority::high, notifier)) {
  for (CopyFlight& flight : flights_) flight.event = device.create_event();
}

CopyLane::~CopyLane() {
  close();
  for (CopyFlight& flight : flights_) {
    if (flight.relay != nullptr) device_.free_host(flight.relay);
  }
}

// ---- what is to do -----------------------------------------------------------------------------

void CopyLane::add(const protocol::CopyAction& copy) {
  mailbox_.push_back(copy);
  std::push_heap(mailbox_.begin(), mailbox_.end(), is_less_urgent);
}

void CopyLane::add(const DeviceCache::Transfer& transfer) {
  transfers_.push_back(transfer);
}

protocol::CopyAction CopyLane::take_copy() {
  HEDDLE_CHECK(has_copies());
  std::pop_heap(mailbox_.begin(), mailbox_.end(), is_less_urgent);
  const protocol::CopyAction copy = mailbox_.back();
  mailbox_.pop_back();
  return copy;
}

DeviceCache::Transfer CopyLane::take_transfer() {
  HEDDLE_CHECK(has_transfers());
  const std::size_t chosen = cache_.most_urgent(transfers_);
  const DeviceCache::Transfer transfer = transfers_[chosen];
  transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(chosen));
  return transfer;
}

// ---- what is in flight -------------------------------------------------------------------------

CopyFlight* CopyLane::free_of(std::span<CopyFlight> flights) {
  const auto found = std::ranges::find(flights, CopyFlight::State::free, &CopyFlight::state);
  return found == flights.end() ? nullptr : &*found;
}

void CopyLane::mark_running(CopyFlight& flight, std::int64_t now_ns) {
  HEDDLE_CHECK(flight.state != CopyFlight::State::running && flight.acquired == flight.end_count,
               "{} of {} ends are acquired", flight.acquired, flight.end_count);
  flight.state = CopyFlight::State::running;
  flight.posted_ns = now_ns;
  flight.order = posted_++;
}

CopyFlight* CopyLane::oldest() {
  CopyFlight* first = nullptr;
  for (CopyFlight& flight : flights_) {
    if (flight.state != CopyFlight::State::running) continue;
    if (first == nullptr || flight.order < first->order) first = &flight;
  }
  return first;
}

bool CopyLane::has_running() const {
  return std::ranges::any_of(flights_, [](const CopyFlight& flight) {
    return flight.state == CopyFlight::State::running;
  });
}

std::size_t CopyLane::active() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      flights_, [](const CopyFlight& flight) { return flight.state != CopyFlight::State::free; }));
}

std::int64_t CopyLane::finish(CopyFlight& flight, std::int64_t end_ns) {
  HEDDLE_DEBUG(&flight == oldest(), "a copy that others in the stream come before");
  flight.state = CopyFlight::State::free;
  return std::max(flight.posted_ns, std::exchange(free_since_ns_, end_ns));
}

std::byte* CopyLane::relay_of(CopyFlight& flight, std::size_t bytes) {
  HEDDLE_DEBUG(!flight.is_transfer && bytes > 0, "{} bytes", bytes);
  if (flight.relay_bytes < bytes) {
    if (flight.relay != nullptr) device_.free_host(std::exchange(flight.relay, nullptr));
    flight.relay_bytes = 0;
    flight.relay = static_cast<std::byte*>(device_.allocate_host(bytes));
    flight.relay_bytes = bytes;
  }
  return flight.relay;
}

bool CopyLane::is_valid() const {
  if (!std::ranges::is_heap(mailbox_, is_less_urgent)) return false;
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    const CopyFlight& f = flights_[i];
    if (f.state == CopyFlight::State::free) continue;
    if (f.is_transfer != (i >= in_flight_max)) return false;
    if (f.end_count > 2 || f.acquired > f.end_count) return false;
    if (f.end_count == 2 && f.ends[1].place < f.ends[0].place) return false;
    if (f.state == CopyFlight::State::acquiring) continue;
    if (f.acquired != f.end_count || f.order >= posted_) return false;
    for (std::size_t k = 0; k < i; ++k) {
      const CopyFlight& other = flights_[k];
      if (other.state != CopyFlight::State::running) continue;
      if (other.order == f.order) return false;
      if ((other.order < f.order) != (other.posted_ns <= f.posted_ns) &&
          other.posted_ns != f.posted_ns) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace heddle
