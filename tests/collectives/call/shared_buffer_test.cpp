#include "node-runtime/collectives/call/shared_buffer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/core.h>
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

#include "node-runtime/transport/pack/device_packer.hpp"
#include "tests/device/device_fixture.hpp"

namespace heddle::collectives {
namespace {

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
  Table(Device& device, std::uint32_t seed)
      : device_(device), stream_(device.create_stream()), packer_(device, {}), random_(seed) {}

  std::set<std::int32_t> refuses;
  bool is_shareable = true;
  /// Events that come last, when there is no other one.
  std::function<bool(const Event&)> is_stuck = [](const Event&) { return false; };

  struct Side {
    std::int64_t ticket;
    std::span<std::byte> bytes;
  };
  using Key = std::array<std::uint64_t, 4>;

  void send(std::int32_t from, std::int32_t to, Courier::Name name,
            std::span<const std::byte> bytes, std::int64_t ticket) {
    auto* const data = const_cast<std::byte*>(bytes.data());  // NOLINT(*-const-cast): only read
    sends_[key(from, to, name)].push_back({ticket, {data, bytes.size()}});
    match(from, to, name);
  }
  void receive(std::int32_t from, std::int32_t to, Courier::Name name, std::span<std::byte> bytes,
               std::int64_t ticket) {
    receives_[key(from, to, name)].push_back({ticket, bytes});
    match(from, to, name);
  }
  void work(std::int32_t rank, p2p::DeviceWork work, std::int64_t ticket) {
    Event event{rank, !work.remote.empty(), false, {}};
    event.happen = [this, rank, ticket, work = std::move(work)] {
      std::vector<p2p::Spot> spots;
      for (const p2p::RemoteMemory& one : work.remote) {
        spots.push_back({std::bit_cast<std::byte*>(one.memory.address), &device_, true});
      }
      if (!spots.empty() && refuses.contains(rank)) {
        *work.refusal = "this one is not to be mapped";
      } else {
        work.queue({*stream_, packer_, spots});
        stream_->synchronize();
      }
      end(rank, ticket);
    };
    events_.push_back(std::move(event));
  }
  void refer(std::int32_t rank, const std::shared_ptr<p2p::Referral>& referral,
             std::int64_t ticket) {
    if (is_shareable) {
      referral->reference.emplace();
      referral->reference->handle.allocation = 1;
      referral->reference->address = std::bit_cast<std::uint64_t>(referral->memory);
    }
    events_.push_back({rank, false, false, [this, rank, ticket] { end(rank, ticket); }});
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

  std::vector<std::shared_ptr<Errand>> errands;

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
      const Side a = sent.front();
      const Side b = wanted.front();
      sent.erase(sent.begin());
      wanted.erase(wanted.begin());
      ASSERT_EQ(a.bytes.size(), b.bytes.size()) << "from rank " << from << " to " << to;
      // Messages between two ranks arrive in order where their names are equal.
      const bool is_note = a.bytes.size() == sizeof(SharedBufferNote);
      std::memcpy(b.bytes.data(), a.bytes.data(), is_note ? a.bytes.size() : 0);
      events_.push_back({from, false, !is_note, [this, from, to, a, b, is_note] {
                           if (!is_note) std::ranges::copy(a.bytes, b.bytes.begin());
                           end(to, b.ticket);
                           end(from, a.ticket);
                         }});
    }
  }
  void end(std::int32_t rank, std::int64_t ticket) {
    errands[static_cast<std::size_t>(rank)]->ended(ticket);
  }

  Device& device_;
  std::unique_ptr<Stream> stream_;
  DevicePacker packer_;
  std::mt19937 random_;
  std::vector<Event> events_;
  std::map<Key, std::vector<Side>> sends_;
  std::map<Key, std::vector<Side>> receives_;
};

class RankCourier final : public Courier {
 public:
  RankCourier(Table& table, std::int32_t rank) : table_(table), rank_(rank) {}
  void send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
            std::int64_t ticket) override {
    table_.send(rank_, to.value(), name, pieces.front(), ticket);
  }
  void receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
               std::int64_t ticket) override {
    table_.receive(from.value(), rank_, name, pieces.front(), ticket);
  }
  void work(p2p::DeviceWork work, std::int64_t ticket) override {
    table_.work(rank_, std::move(work), ticket);
  }
  void refer(std::shared_ptr<p2p::Referral> referral, std::int64_t ticket) override {
    table_.refer(rank_, referral, ticket);
  }

 private:
  Table& table_;
  std::int32_t rank_;
};

class OneDevice final : public RankDevices {
 public:
  explicit OneDevice(Device& device) : device_(device) {}
  [[nodiscard]] std::optional<p2p::LaneId> lane_of(const void*, std::int64_t) const override {
    return p2p::LaneId{0};
  }
  [[nodiscard]] const Device& device(p2p::LaneId) const override { return device_; }
  [[nodiscard]] std::shared_ptr<std::byte> scratch(p2p::LaneId, std::int64_t bytes) override {
    const auto made = std::make_shared<DeviceBuffer>(device_, static_cast<std::size_t>(bytes));
    return {made, made->address()};
  }
  void run(const std::vector<Stage>&) override {}

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

double value(std::int32_t rank, std::size_t i) {
  return 1.0 / (static_cast<double>(rank) * 7919 + static_cast<double>(i) + 1);
}

/// The sum of ranks [begin, end) in the bracket, by its definition.
double bracket(std::int32_t begin, std::int32_t end, std::size_t i) {
  if (end - begin == 1) return value(begin, i);
  std::int32_t left = 1;
  while (2 * left < end - begin) left *= 2;
  const double a = bracket(begin, begin + left, i);
  return a + bracket(begin + left, end, i);
}

struct Case {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int32_t ranks = 4;
  std::int32_t root = 0;
  std::size_t count = 1000;
  std::int64_t fragment = 800;  ///< bytes
  Copies copies = Copies::by_speed;
  bool is_in_place = false;
  std::set<std::int32_t> on_host{};
  std::set<std::int32_t> refuses{};
  bool is_shareable = true;
  std::function<bool(const Event&)> is_stuck = [](const Event&) { return false; };
};

std::unique_ptr<Device> make_device() {
  EmulatedOptions emulated;
  emulated.memory_bytes = 64 << 20;
  emulated.foreign_bytes = 4 << 20;
  DeviceOptions options{DeviceBackend::emulated, 1, emulated, {}};
  return std::move(make_devices(options).devices.front());
}

/// Does the operation on all ranks, and returns what they say of it.
std::vector<std::string> run(const Case& of, std::uint32_t seed) {
  const auto owner = make_device();
  Device& device = *owner;
  OneDevice devices(device);
  Table table(device, seed);
  table.refuses = of.refuses;
  table.is_shareable = of.is_shareable;
  table.is_stuck = of.is_stuck;
  const bool reduces = of.kind != CollectiveKind::broadcast;
  std::vector<NodeId> nodes;
  for (std::int32_t r = 0; r < of.ranks; ++r) nodes.emplace_back(r);
  std::vector<std::unique_ptr<RankCourier>> couriers;
  std::vector<std::unique_ptr<Doubles>> inputs;
  std::vector<std::unique_ptr<Doubles>> outputs;
  const auto known = std::make_shared<KnownMemory>();
  for (std::int32_t r = 0; r < of.ranks; ++r) {
    Call call;
    call.kind = of.kind;
    call.root = of.root;
    const bool is_root = r == of.root;
    const bool is_host = of.on_host.contains(r);
    std::vector<double> own(of.count);
    for (std::size_t i = 0; i < of.count; ++i) own[i] = value(r, i);
    inputs.push_back(std::make_unique<Doubles>(device, own, is_host));
    outputs.push_back(
        std::make_unique<Doubles>(device, std::vector<double>(of.count, -1), is_host));
    const bool has_in = reduces || is_root;
    const bool has_out = of.kind == CollectiveKind::all_reduce ||
                         (of.kind == CollectiveKind::reduce ? is_root : !is_root);
    DirectMemory memory;
    memory.home = {&devices, is_host ? std::nullopt : std::optional(p2p::LaneId{0})};
    memory.block_bytes = static_cast<std::int64_t>(of.count * sizeof(double));
    if (has_out) memory.output = outputs.back()->address();
    if (of.is_in_place) {
      outputs.back() = std::make_unique<Doubles>(device, own, is_host);
      memory.output = outputs.back()->address();
      memory.input = memory.output;
    } else if (has_in) {
      memory.input = inputs.back()->address();
    }
    Task task;
    task.scalar = Scalar::float64;
    table.errands.push_back(make_shared_buffer_way(call, {Rank{r}, nodes, known}, memory,
                                                   {Rank{of.root}, of.copies, of.fragment}, task));
    couriers.push_back(std::make_unique<RankCourier>(table, r));
  }
  std::vector<std::int32_t> order;
  for (std::int32_t r = 0; r < of.ranks; ++r) order.push_back(r);
  std::ranges::shuffle(order, std::mt19937(seed));
  // Ranks come while others are at work.
  for (const std::int32_t r : order) {
    table.errands[static_cast<std::size_t>(r)]->begin(*couriers[static_cast<std::size_t>(r)]);
    for (std::uint32_t k = 0; k < seed % 9; ++k) static_cast<void>(table.step());
  }
  while (table.step()) {
  }
  std::vector<std::string> said;
  for (std::int32_t r = 0; r < of.ranks; ++r) {
    const Errand& errand = *table.errands[static_cast<std::size_t>(r)];
    EXPECT_TRUE(errand.is_over()) << "rank " << r << " waits for " << errand.waits_for();
    said.push_back(errand.describe());
    const bool is_root = r == of.root;
    const bool has_out = of.kind == CollectiveKind::all_reduce ||
                         (of.kind == CollectiveKind::reduce ? is_root : !is_root);
    if (!has_out) continue;
    const std::vector<double>& got = outputs[static_cast<std::size_t>(r)]->get();
    for (std::size_t i = 0; i < of.count; ++i) {
      const double wanted = reduces ? bracket(0, of.ranks, i) : value(of.root, i);
      if (std::bit_cast<std::uint64_t>(got[i]) == std::bit_cast<std::uint64_t>(wanted)) continue;
      ADD_FAILURE() << "rank " << r << ", element " << i << ": " << got[i] << ", not " << wanted;
      break;
    }
  }
  return said;
}

/// All say the same.
std::string way_of(const Case& of, std::uint32_t seed = 1) {
  const std::vector<std::string> said = run(of, seed);
  for (const std::string& one : said) EXPECT_EQ(one, said.front());
  return said.front();
}

}  // namespace

TEST(SharedBuffer, gives_the_same_bits_whatever_ends_first) {
  std::mt19937 random(5);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    Case of;
    of.kind = std::array{CollectiveKind::all_reduce, CollectiveKind::reduce,
                         CollectiveKind::broadcast}[seed % 3];
    of.ranks = 2 + below(6);
    of.root =
        of.kind == CollectiveKind::all_reduce ? 0 : below(static_cast<std::uint32_t>(of.ranks));
    of.count = static_cast<std::size_t>(1 + below(seed % 2 == 0 ? 20 : 3000));
    of.fragment = 8 * (1 + below(400));
    of.copies = static_cast<Copies>(below(copies_names.size()));
    of.is_in_place = of.kind == CollectiveKind::all_reduce && below(2) == 0;
    for (std::int32_t r = 0; r < of.ranks; ++r) {
      if (below(4) == 0) of.on_host.insert(r);
      if (below(6) == 0) of.refuses.insert(r);
    }
    const std::int32_t stuck = below(3);
    if (stuck == 1) of.is_stuck = [](const Event& e) { return e.is_mapped && e.rank == 1; };
    if (stuck == 2) of.is_stuck = [](const Event& e) { return e.is_elements && e.rank % 2 == 1; };
    SCOPED_TRACE(fmt::format("seed {}: {} of {} ranks, root {}, {} doubles, fragments of {}, {}",
                             seed, name_of(of.kind), of.ranks, of.root, of.count, of.fragment,
                             name_of(of.copies)));
    static_cast<void>(way_of(of, seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SharedBuffer, copies_as_it_is_asked_to) {
  Case of;
  of.fragment = 8000;
  of.copies = Copies::mapped;
  EXPECT_EQ(way_of(of), "gsb, 0 of 6 copies staged");
  of.copies = Copies::staged;
  EXPECT_EQ(way_of(of), "gsb, 6 of 6 copies staged");
  // 8000 bytes: the table stages all.
  of.copies = Copies::by_table;
  EXPECT_EQ(way_of(of), "gsb, 6 of 6 copies staged");
  of.kind = CollectiveKind::reduce;
  EXPECT_EQ(way_of(of), "gsb, 3 of 3 copies staged");
  of.copies = Copies::mapped;
  of.fragment = 4000;
  EXPECT_EQ(way_of(of), "gsb, 0 of 6 copies staged") << "two fragments";
}

TEST(SharedBuffer, stages_what_cannot_be_mapped) {
  Case of;
  of.fragment = 8000;
  of.copies = Copies::mapped;
  of.is_shareable = false;
  EXPECT_EQ(way_of(of), "gsb, 6 of 6 copies staged");
  of.is_shareable = true;
  of.on_host = {2};
  EXPECT_EQ(way_of(of), "gsb, 2 of 6 copies staged");
  // Asked for, refused, and asked for again; out of the buffer it is staged at once.
  of.on_host = {};
  of.refuses = {3};
  EXPECT_EQ(way_of(of), "gsb, 2 of 7 copies staged");
}

TEST(SharedBuffer, does_a_stuck_copy_again_and_uses_what_came_in_time) {
  for (const bool is_in_place : {false, true}) {
    Case of;
    of.ranks = 6;
    of.fragment = 8000;
    of.is_in_place = is_in_place;
    // The staged copy of the first one to come ends when nothing else can.
    of.is_stuck = [](const Event& e) { return e.is_elements; };
    EXPECT_EQ(way_of(of), "gsb, 1 of 11 copies staged");
    of.is_stuck = [](const Event& e) { return e.is_mapped; };
    EXPECT_EQ(way_of(of), "gsb, 10 of 11 copies staged");
  }
}

TEST(SharedBuffer, has_parts_that_do_not_overlap) {
  const SharedBufferLayout layout{10'000, 1'000, 3};
  EXPECT_EQ(layout.fragments(), 10);
  std::vector<std::int64_t> begins;
  for (std::int64_t f = 0; f < layout.places(); ++f) {
    for (std::int32_t m = 0; m < 3; ++m) begins.push_back(layout.slot(m, f));
    begins.push_back(layout.result(f));
    begins.push_back(layout.own(f));
  }
  begins.push_back(layout.again());
  begins.push_back(layout.all_bytes());
  std::ranges::sort(begins);
  EXPECT_EQ(begins.front(), 0);
  for (std::size_t k = 1; k < begins.size(); ++k) EXPECT_GE(begins[k] - begins[k - 1], 1'000);
  EXPECT_EQ(layout.slot(2, 4), layout.slot(2, 1)) << "a ring";
  EXPECT_EQ((SharedBufferLayout{1'000, 1'000, 3}.all_bytes()), 1'024 * (4 + 2)) << "one fragment";
}

}  // namespace heddle::collectives
