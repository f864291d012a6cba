#include "apps/tuning/copies.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <utility>
#include <vector>

#include "apps/tuning/device_bench.hpp"
#include "apps/tuning/operands.hpp"

namespace heddle::tuning {
namespace {

constexpr std::size_t copy_bytes = std::size_t{64} << 20;
constexpr double seconds_each = 0.2;
constexpr std::size_t rounds_max = 200;
constexpr std::size_t rounds_min = 3;

/// 10^9 bytes per second of `round`, which copies `bytes` and returns when they are there. The median
/// of the rounds: links that were idle need some of them to come to speed.
double rate_of(std::size_t bytes, double seconds, const std::function<void()>& round) {
  using Clock = Effort::Clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  round();  // pages and mappings are made
  const Clock::time_point begin = Clock::now();
  std::vector<double> times;
  while (times.size() < rounds_min || (times.size() < rounds_max && since(begin) < seconds)) {
    const Clock::time_point now = Clock::now();
    round();
    times.push_back(std::max(1e-9, since(now)));
  }
  return static_cast<double>(bytes) / median(std::move(times)) * 1e-9;
}

}  // namespace

CopyRates measure_copies(Device& device, Device* peer, Effort& effort) {
  const auto bytes = static_cast<std::size_t>(
      std::clamp<std::uint64_t>(device.memory_available() / 4, 4096, copy_bytes));
  const double seconds = effort.lasting(seconds_each);
  const DeviceBuffer in(device, bytes);
  const DeviceBuffer out(device, bytes);
  const HostMemory source(device, bytes);
  const HostMemory target(device, bytes);
  std::memset(source.bytes(), 1, bytes);
  std::memset(target.bytes(), 1, bytes);
  const auto to_device = device.create_stream();
  const auto to_host = device.create_stream();
  const auto copy_in = [&] { to_device->copy({in.address(), &device}, {source.bytes()}, bytes); };
  const auto copy_out = [&] { to_host->copy({target.bytes()}, {out.address(), &device}, bytes); };
  const std::string& name = device.info().kind;

  // What lies there has a value.
  to_host->copy({out.address(), &device}, {source.bytes()}, bytes);
  to_host->synchronize();
  CopyRates rates;
  effort.tell(fmt::format("copies to {}", name));
  rates.to_device = rate_of(bytes, seconds, [&] {
    copy_in();
    to_device->synchronize();
  });
  effort.tell(fmt::format("copies from {}", name));
  rates.to_host = rate_of(bytes, seconds, [&] {
    copy_out();
    to_host->synchronize();
  });
  effort.tell(fmt::format("copies to and from {}", name));
  rates.both_ways = rate_of(2 * bytes, seconds, [&] {
    copy_in();
    copy_out();
    to_device->synchronize();
    to_host->synchronize();
  });
  if (peer == nullptr || !device.can_access_peer(*peer) || peer->memory_available() < bytes) {
    return rates;
  }
  effort.tell(fmt::format("copies between two {}", name));
  const DeviceBuffer theirs(*peer, bytes);
  rates.to_peer = rate_of(bytes, seconds, [&] {
    to_device->copy({theirs.address(), peer}, {out.address(), &device}, bytes);
    to_device->synchronize();
  });
  return rates;
}

}  // namespace heddle::tuning
