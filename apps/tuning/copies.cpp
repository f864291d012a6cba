#include "apps/tuning/copies.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/tuning/device_bench.hpp"
#include "apps/tuning/operands.hpp"
#include "base/median.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/pack_plan.hpp"
#include "node-runtime/transport/pack/device_packer.hpp"

namespace heddle::tuning {
namespace {

constexpr std::size_t copy_bytes = std::size_t{64} << 20;
constexpr std::size_t short_copy_bytes = 64;
constexpr std::int64_t column_rows = 128;
constexpr int turns = 3;
constexpr double turn_seconds = 0.1;  ///< of a turn
constexpr int copies_max = 100;
constexpr int copies_min = 2;

/// What is copied at the same time, and how fast.
struct Way {
  std::string what;
  std::size_t bytes;
  std::function<void()> copy;   ///< returns when all is there
  std::vector<double> rates{};  ///< 10^9 bytes per second, of each turn
};

/// The rate of each way, which are measured in turns: a link that was idle needs a while to come to
/// speed, and what lies in the processor's caches is slower to fetch from there.
std::vector<double> rates_of(std::vector<Way> ways, const std::string& name, Effort& effort) {
  using Clock = Effort::Clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const double seconds = effort.lasting(turn_seconds);
  for (int turn = 0; turn < turns; ++turn) {
    for (Way& way : ways) {
      effort.tell(fmt::format("copies {} {}", way.what, name));
      way.copy();  // pages and mappings are made
      const Clock::time_point begin = Clock::now();
      int copies = 0;
      for (; copies < copies_min || (copies < copies_max && since(begin) < seconds); ++copies) {
        way.copy();
      }
      const double gigabytes = static_cast<double>(way.bytes) * copies * 1e-9;
      way.rates.push_back(gigabytes / std::max(1e-9, since(begin)));
    }
  }
  std::vector<double> rates;
  rates.reserve(ways.size());
  for (Way& way : ways) rates.push_back(median(std::move(way.rates)));
  return rates;
}

}  // namespace

CopyRates measure_copies(Device& device, Device* peer, Effort& effort) {
  const auto bytes = static_cast<std::size_t>(
      std::clamp<std::uint64_t>(device.memory_available() / 4, 4096, copy_bytes));
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
  // What lies there has a value.
  to_host->copy({out.address(), &device}, {source.bytes()}, bytes);
  to_host->synchronize();
  std::vector<Way> ways{{"to", bytes,
                         [&] {
                           copy_in();
                           to_device->synchronize();
                         }},
                        {"from", bytes,
                         [&] {
                           copy_out();
                           to_host->synchronize();
                         }},
                        {"to and from", 2 * bytes, [&] {
                           copy_in();
                           copy_out();
                           to_device->synchronize();
                           to_host->synchronize();
                         }}};
  std::optional<DeviceBuffer> theirs;
  if (peer != nullptr && device.can_access_peer(*peer) && peer->memory_available() >= bytes) {
    theirs.emplace(*peer, bytes);
    ways.push_back({"between two of", bytes, [&] {
                      to_device->copy({theirs->address(), peer}, {out.address(), &device}, bytes);
                      to_device->synchronize();
                    }});
  }
  // A part of a matrix, whose columns are as long as those of a tile.
  packing::UnitsStore::Options units;
  units.cache_bytes = 4096;
  units.chunk_units = 64;
  DevicePacker packer(device, units);
  const std::int64_t columns =
      static_cast<std::int64_t>(bytes / sizeof(double)) / (2 * column_rows);
  const auto plan = std::make_shared<const PackPlan>(
      make_plan(Datatype::vector(columns, column_rows, 2 * column_rows, Scalar::float64)));
  ways.push_back({"within", bytes, [&] {
                    to_device->copy({in.address(), &device}, {out.address(), &device}, bytes);
                    to_device->synchronize();
                  }});
  const std::int64_t packed = plan->stream_bytes(1);
  if (packed > 0) {
    ways.push_back({"packing within", static_cast<std::size_t>(packed), [&] {
                      packer.pack(*to_device, plan, 1, out.address(), {0, packed},
                                  {in.address(), &device}, {});
                      to_device->synchronize();
                    }});
  }
  const auto event = device.create_event();
  ways.push_back(
      {"of some bytes within", short_copy_bytes, [&] {
         to_device->copy({in.address(), &device}, {out.address(), &device}, short_copy_bytes);
         to_device->record(*event);
         while (event->query() == EventState::pending) {
         }
       }});
  const std::vector<double> rates = rates_of(std::move(ways), device.info().kind, effort);
  CopyRates result;
  result.to_device = rates[0];
  result.to_host = rates[1];
  result.both_ways = rates[2];
  std::size_t next = 3;
  if (theirs) result.to_peer = rates[next++];
  result.within = rates[next++];
  if (packed > 0) result.packing = rates[next++];
  result.short_us = static_cast<double>(short_copy_bytes) / rates[next] * 1e-3;
  return result;
}

}  // namespace heddle::tuning
