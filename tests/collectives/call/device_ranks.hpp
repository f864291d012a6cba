#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node-runtime/collectives/call/buffer_side.hpp"
#include "node-runtime/transport/pack/device_packer.hpp"
#include "tests/device/device_fixture.hpp"

/// Ranks of one process whose messages and works end in a random order, with one emulated device.
namespace heddle::collectives {

/// Something of one rank that may end next.
struct Event {
  std::int32_t rank = 0;
  bool is_mapped = false;    ///< a work of its device on another rank's memory
  bool is_elements = false;  ///< a message that is longer than a note
  std::function<void()> happen;
};

/// Ranks of one process with one device: what they begin ends in a random order. Works of a rank
/// that may not map are refused.
class Table {
 public:
  static constexpr std::size_t note_bytes = sizeof(BufferNote);

  Table(Device& device, std::uint32_t seed)
      : device_(device), stream_(device.create_stream()), packer_(device, {}), random_(seed) {}

  std::set<std::int32_t> refuses;
  std::int32_t refusals = 0;
  std::int32_t own_works = 0;    ///< of a device on its rank's memory alone, as packing is
  std::uint64_t allocation = 1;  ///< that memory is said to be of
  /// Which device the memory of a rank is said to be on.
  std::function<std::uint8_t(std::int32_t)> device_of = [](std::int32_t) { return 0; };
  bool is_shareable = true;
  /// Events that come last, when there is no other one.
  std::function<bool(const Event&)> is_stuck = [](const Event&) { return false; };

  using End = std::function<void()>;
  struct Side {
    End end;
    std::vector<std::span<std::byte>> pieces;

    [[nodiscard]] std::size_t bytes() const {
      std::size_t all = 0;
      for (const std::span<std::byte> piece : pieces) all += piece.size();
      return all;
    }
  };
  using Key = std::array<std::uint64_t, 4>;

  void send(std::int32_t from, std::int32_t to, Courier::Name name,
            std::span<const std::span<const std::byte>> pieces, End end) {
    Side side{std::move(end), {}};
    for (const std::span<const std::byte> piece : pieces) {
      // NOLINTNEXTLINE(*-const-cast): only read
      side.pieces.emplace_back(const_cast<std::byte*>(piece.data()), piece.size());
    }
    sends_[key(from, to, name)].push_back(std::move(side));
    match(from, to, name);
  }
  void receive(std::int32_t from, std::int32_t to, Courier::Name name,
               std::span<const std::span<std::byte>> pieces, End end) {
    receives_[key(from, to, name)].push_back({std::move(end), {pieces.begin(), pieces.end()}});
    match(from, to, name);
  }
  void work(std::int32_t rank, p2p::DeviceWork work, End end) {
    Event event{rank, !work.remote.empty(), false, {}};
    own_works += work.remote.empty() ? 1 : 0;
    event.happen = [this, rank, end = std::move(end), work = std::move(work)] {
      std::vector<p2p::Spot> spots;
      for (const p2p::RemoteMemory& one : work.remote) {
        spots.push_back({std::bit_cast<std::byte*>(one.memory.address), &device_, true});
      }
      if (!spots.empty() && refuses.contains(rank)) {
        *work.refusal = "this one is not to be mapped";
        ++refusals;
      } else {
        work.queue({*stream_, packer_, spots});
        stream_->synchronize();
      }
      end();
    };
    events_.push_back(std::move(event));
  }
  void refer(std::int32_t rank, const std::shared_ptr<p2p::Referral>& referral, End end) {
    if (is_shareable) {
      referral->reference.emplace();
      referral->reference->handle.device.bytes.front() = device_of(rank);
      referral->reference->handle.allocation = allocation;
      referral->reference->address = std::bit_cast<std::uint64_t>(referral->memory);
    }
    events_.push_back({rank, false, false, std::move(end)});
  }

  /// False: nothing is left to happen.
  bool step() {
    if (events_.empty()) return false;
    std::vector<std::size_t> free;
    for (std::size_t k = 0; k < events_.size(); ++k) {
      if (!is_stuck(events_[k])) free.push_back(k);
    }
    const std::size_t next =
        free.empty() ? random_() % events_.size() : free[random_() % free.size()];
    const Event event = std::move(events_[next]);
    events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(next));
    event.happen();
    return true;
  }

 private:
  static Key key(std::int32_t from, std::int32_t to, Courier::Name name) {
    const std::int64_t place = name.fragment * name.messages + name.number;
    return {static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to),
            static_cast<std::uint64_t>(place), name.seal};
  }
  void match(std::int32_t from, std::int32_t to, Courier::Name name) {
    auto& sent = sends_[key(from, to, name)];
    auto& wanted = receives_[key(from, to, name)];
    while (!sent.empty() && !wanted.empty()) {
      const Side a = std::move(sent.front());
      const Side b = std::move(wanted.front());
      sent.erase(sent.begin());
      wanted.erase(wanted.begin());
      ASSERT_EQ(a.bytes(), b.bytes()) << "from rank " << from << " to " << to;
      // Messages between two ranks arrive in order where their names are equal.
      const bool is_note = a.bytes() == note_bytes;
      if (is_note) transfer(a, b);
      events_.push_back({from, false, !is_note, [a, b, is_note] {
                           if (!is_note) transfer(a, b);
                           b.end();
                           a.end();
                         }});
    }
  }
  static void transfer(const Side& from, const Side& to) {
    std::vector<std::byte> all;
    for (const auto& piece : from.pieces) all.insert(all.end(), piece.begin(), piece.end());
    auto next = all.cbegin();
    for (const std::span<std::byte> piece : to.pieces) {
      std::copy_n(next, piece.size(), piece.begin());
      next += static_cast<std::ptrdiff_t>(piece.size());
    }
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  DevicePacker packer_;
  std::mt19937 random_;
  std::vector<Event> events_;
  std::map<Key, std::vector<Side>> sends_;
  std::map<Key, std::vector<Side>> receives_;
};

/// Serves an errand or an execution of one rank, and tells it of ends.
class RankCourier final : public Courier {
 public:
  using Ended = std::function<void(std::int64_t ticket)>;
  RankCourier(Table& table, std::int32_t rank, Ended ended)
      : table_(table), rank_(rank), ended_(std::move(ended)) {}
  /// Tells another one, from now on.
  void tell(Ended ended) { ended_ = std::move(ended); }
  void send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
            std::int64_t ticket) override {
    table_.send(rank_, to.value(), name, pieces, end(ticket));
  }
  void receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
               std::int64_t ticket) override {
    table_.receive(from.value(), rank_, name, pieces, end(ticket));
  }
  void work(p2p::DeviceWork work, std::int64_t ticket) override {
    table_.work(rank_, std::move(work), end(ticket));
  }
  void refer(std::shared_ptr<p2p::Referral> referral, std::int64_t ticket) override {
    table_.refer(rank_, referral, end(ticket));
  }

 private:
  [[nodiscard]] Table::End end(std::int64_t ticket) const {
    return [this, ticket] { ended_(ticket); };
  }

  Table& table_;
  std::int32_t rank_;
  Ended ended_;
};

class OneDevice final : public RankDevices {
 public:
  explicit OneDevice(Device& device) : device_(device) {}
  [[nodiscard]] std::optional<p2p::LaneId> lane_of(const void* memory,
                                                   std::int64_t) const override {
    try {
      static_cast<void>(device_.locate(static_cast<const std::byte*>(memory)));
      return p2p::LaneId{0};
    } catch (const Error&) {
      return std::nullopt;  // the host's
    }
  }
  [[nodiscard]] const Device& device(p2p::LaneId) const override { return device_; }
  [[nodiscard]] std::shared_ptr<std::byte> scratch(p2p::LaneId, std::int64_t bytes) override {
    const auto made = std::make_shared<DeviceBuffer>(device_, static_cast<std::size_t>(bytes));
    return {made, made->address()};
  }
  [[nodiscard]] std::shared_ptr<std::byte> locked_host(p2p::LaneId, std::int64_t bytes) override {
    if (!has_locked_memory) return nullptr;
    auto* const made =
        static_cast<std::byte*>(device_.allocate_host(static_cast<std::size_t>(bytes)));
    return {made, [&device = device_](std::byte* memory) { device.free_host(memory); }};
  }
  void run(const std::vector<Stage>&) override {}

  bool has_locked_memory = true;

 private:
  Device& device_;
};

/// Doubles of a rank, on the host or on the device.
class Doubles {
 public:
  Doubles(Device& device, std::vector<double> values, bool is_on_host)
      : device_(device), values_(std::move(values)), stream_(device.create_stream()) {
    if (is_on_host) return;
    memory_ = std::make_unique<DeviceBuffer>(device, std::max<std::size_t>(8, bytes()));
    stream_->copy({memory_->address(), &device_}, {values_.data(), nullptr}, bytes());
    stream_->synchronize();
  }
  [[nodiscard]] std::byte* address() {
    return memory_ ? memory_->address() : reinterpret_cast<std::byte*>(values_.data());
  }
  [[nodiscard]] const std::vector<double>& get() {
    if (memory_) {
      stream_->copy({values_.data(), nullptr}, {memory_->address(), &device_}, bytes());
      stream_->synchronize();
    }
    return values_;
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return values_.size() * sizeof(double); }

  Device& device_;
  std::vector<double> values_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceBuffer> memory_;
};

inline double value(std::int32_t rank, std::size_t i) {
  return 1.0 / (static_cast<double>(rank) * 7919 + static_cast<double>(i) + 1);
}

/// The sum of ranks [begin, end) in the bracket, by its definition.
inline double bracket(std::int32_t begin, std::int32_t end, std::size_t i) {
  if (end - begin == 1) return value(begin, i);
  std::int32_t left = 1;
  while (2 * left < end - begin) left *= 2;
  const double a = bracket(begin, begin + left, i);
  return a + bracket(begin + left, end, i);
}

inline std::unique_ptr<Device> make_device() {
  EmulatedOptions emulated;
  emulated.memory_bytes = 64 << 20;
  emulated.foreign_bytes = 4 << 20;
  DeviceOptions options{DeviceBackend::emulated, 1, emulated, {}};
  return std::move(make_devices(options).devices.front());
}

}  // namespace heddle::collectives
