#include "node-runtime/transport/probe/probed_place.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <thread>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

/// Numbers of SplitMix64.
std::uint64_t random_word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = seed + (index + 1) * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace

void fill_with_random(std::byte* to, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t begin = 0; begin < bytes; begin += sizeof(std::uint64_t)) {
    const std::uint64_t word = random_word(seed, begin);
    std::memcpy(to + begin, &word, std::min(sizeof word, bytes - begin));
  }
}

void check_random(const std::byte* found, std::size_t bytes, std::uint64_t seed,
                  const std::string& where) {
  for (std::size_t begin = 0; begin < bytes; begin += sizeof(std::uint64_t)) {
    const std::uint64_t word = random_word(seed, begin);
    if (std::memcmp(found + begin, &word, std::min(sizeof word, bytes - begin)) == 0) continue;
    throw Error(ErrorCode::internal,
                fmt::format("{}: wrong content after a transfer of {}, from byte {} on", where,
                            format_bytes(bytes), begin));
  }
}

ProbedPlace::ProbedPlace(ProbePlace place, const ProbeOptions& options)
    : place_(place), options_(options), ordinary_(options.timed_bytes) {}

ProbedPlace::ProbedPlace(ProbePlace place, Device& device, const ProbeOptions& options)
    : place_(place),
      options_(options),
      device_(&device),
      ordinary_(options.timed_bytes),
      scratch_(options.checked_bytes) {
  try {
    memory_ = device.allocate(options.timed_bytes);
    renew();
  } catch (const Error& error) {
    lack_ = error.what();
  }
  try {
    locked_ = static_cast<std::byte*>(device.allocate_host(options.timed_bytes));
  } catch (const Error& error) {
    lack_locked_ = error.what();
  }
}

ProbedPlace::~ProbedPlace() {
  give_up();
  if (locked_ != nullptr) device_->free_host(locked_);
  if (memory_.address != nullptr) device_->free(memory_);
}

void ProbedPlace::give_up() {
  // Before the events: the stream's end completes their records.
  if (stream_ != nullptr) stream_->abandon("its probe has ended");
  stream_.reset();
  ready_.reset();
  done_.reset();
}

void ProbedPlace::renew() {
  give_up();
  stream_ = device_->create_stream();
  ready_ = device_->create_event();
  done_ = device_->create_event();
}

void ProbedPlace::start_afresh() {
  require_device();
  try {
    renew();
  } catch (const Error& error) {
    lack_ = error.what();
    throw;
  }
}

void ProbedPlace::require_device() const {
  if (!lack_.empty()) throw Error(ErrorCode::internal, lack_);
}

std::byte* ProbedPlace::locked_or_throw() const {
  if (locked_ == nullptr) {
    throw Error(ErrorCode::internal, fmt::format("no page-locked memory: {}", lack_locked_));
  }
  return locked_;
}

std::byte* ProbedPlace::buffer(Way way) {
  return way == Way::staged && locked_ != nullptr ? locked_ : ordinary_.data();
}

void ProbedPlace::finish() {
  if (device_ == nullptr) return;
  require_device();
  stream_->record(*done_);
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(options_.device_seconds_max * 1e9);
  EventState state = done_->query();
  while (state == EventState::pending && now_ns() < end) {
    std::this_thread::yield();
    state = done_->query();
  }
  if (state == EventState::done) return;
  const std::string failure =
      state == EventState::failed
          ? done_->failure()
          : fmt::format("{} did not come to an end within {}", to_string(place_),
                        format_seconds(options_.device_seconds_max));
  try {
    renew();
  } catch (const Error& error) {
    lack_ = fmt::format("{}; afterwards: {}", failure, error.what());
  }
  throw Error(ErrorCode::internal, failure);
}

void ProbedPlace::begin_fill(std::uint64_t seed, std::size_t bytes) {
  if (device_ == nullptr) {
    fill_with_random(ordinary_.data(), bytes, seed);
    return;
  }
  require_device();
  // Page-locked, so that the copy need not be over when the call returns.
  std::byte* from = buffer(Way::staged);
  fill_with_random(from, bytes, seed);
  stream_->copy({memory_.address, device_}, {from, nullptr}, bytes);
  stream_->record(*ready_);
}

void ProbedPlace::fill(std::uint64_t seed, std::size_t bytes) {
  begin_fill(seed, bytes);
  finish();
}

void ProbedPlace::check(std::uint64_t seed, std::size_t bytes) {
  const std::byte* found = ordinary_.data();
  if (device_ != nullptr) {
    require_device();
    stream_->copy({scratch_.data(), nullptr}, {memory_.address, device_}, bytes);
    finish();
    found = scratch_.data();
  }
  check_random(found, bytes, seed, to_string(place_));
}

void ProbedPlace::copy_out(Way way, std::size_t bytes) {
  if (device_ == nullptr) return;
  require_device();
  std::byte* to = way == Way::staged ? locked_or_throw() : ordinary_.data();
  stream_->copy({to, nullptr}, {memory_.address, device_}, bytes);
  finish();
}

void ProbedPlace::copy_in(Way way, const std::byte* from, std::size_t bytes) {
  if (device_ == nullptr) return;
  require_device();
  if (way == Way::staged) static_cast<void>(locked_or_throw());
  stream_->copy({memory_.address, device_}, {from, nullptr}, bytes);
  finish();
}

void ProbedPlace::record() {
  require_device();
  stream_->record(*ready_);
}

void ProbedPlace::pull(const std::byte* from, const Device& owner, const Event& ready,
                       std::size_t bytes) {
  require_device();
  stream_->wait(ready);
  stream_->copy({memory_.address, device_}, {from, &owner}, bytes);
  finish();
}

}  // namespace heddle
