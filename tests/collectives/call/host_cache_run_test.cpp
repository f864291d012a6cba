/// Groups of several hosts with an emulated device: whole executions of all ranks, as their
/// planners make them, that keep fragments in host memory (000 section 5.2.4).

#include <algorithm>
#include <bit>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "node-runtime/collectives/call/plan.hpp"
#include "node-runtime/collectives/group_calls.hpp"
#include "tests/collectives/call/device_ranks.hpp"

namespace heddle::collectives {
namespace {

/// Counts what a rank has its device do, and what it sends to other hosts from device memory.
class CountingCourier final : public Courier {
 public:
  CountingCourier(Courier& to, const Device& device, std::vector<bool> is_other_host)
      : to_(to), device_(device), is_other_host_(std::move(is_other_host)) {}

  void send(Rank to, Name name, std::span<const std::span<const std::byte>> pieces,
            std::int64_t ticket) override {
    const bool is_far = is_other_host_[static_cast<std::size_t>(to.value())];
    if (is_far && device_.owns(pieces.front().data())) ++far_sends_from_device;
    if (is_far) ++far_sends;
    to_.send(to, name, pieces, ticket);
  }
  void receive(Rank from, Name name, std::span<const std::span<std::byte>> pieces,
               std::int64_t ticket) override {
    to_.receive(from, name, pieces, ticket);
  }
  void work(p2p::DeviceWork work, std::int64_t ticket) override {
    ++works;
    to_.work(std::move(work), ticket);
  }
  void refer(std::shared_ptr<p2p::Referral> referral, std::int64_t ticket) override {
    to_.refer(std::move(referral), ticket);
  }

  std::int64_t works = 0;
  std::int64_t far_sends = 0;
  std::int64_t far_sends_from_device = 0;

 private:
  Courier& to_;
  const Device& device_;
  std::vector<bool> is_other_host_;
};

struct CacheRun {
  CollectiveKind kind = CollectiveKind::broadcast;
  std::int32_t hosts = 3;
  std::int32_t ranks_of_host = 2;
  std::int32_t root = 0;
  std::size_t count = 5000;
  std::int64_t fragment = 8000;  ///< bytes
  std::string algorithm = "binomial";
  bool is_in_place = false;
  std::set<std::int32_t> on_host{};
  bool has_locked_memory = true;
  double peer_bytes_per_s = 350e9;

  [[nodiscard]] std::int32_t ranks() const { return hosts * ranks_of_host; }
};

struct RankReport {
  std::string way;
  std::string considered;
  std::int64_t works = 0;
  std::int64_t far_sends = 0;
  std::int64_t far_sends_from_device = 0;
};

Call call_of(const CacheRun& of, std::int32_t rank, const Outgoing& from, const Incoming& to) {
  CollectiveOptions options;
  options.algorithm = of.algorithm;
  options.fragment_bytes = of.fragment;
  const auto sum = ReduceOperation::sum();
  if (of.kind == CollectiveKind::all_gather) return all_gather_call(from, to, options);
  if (of.kind == CollectiveKind::all_reduce) {
    return of.is_in_place ? all_reduce_in_place_call(to, sum, options)
                          : all_reduce_call(from, to, sum, options);
  }
  Call call;
  call.kind = CollectiveKind::broadcast;
  call.root = of.root;
  call.options = options;
  (rank == of.root ? call.inputs : call.outputs).emplace_back(to);
  return call;
}

/// Does the operation on all ranks with every bit checked.
std::vector<RankReport> run(const CacheRun& of, std::uint32_t seed) {
  const auto owner = make_device();
  Device& device = *owner;
  OneDevice devices(device);
  devices.has_locked_memory = of.has_locked_memory;
  Table table(device, seed);
  std::mt19937 random(seed);
  std::vector<RankPlace> places;
  for (std::int32_t r = 0; r < of.ranks(); ++r) {
    places.push_back({.host = r / of.ranks_of_host, .gpu = r % of.ranks_of_host});
  }
  CollectiveRates rates;
  rates.levels.fill({2e-6, 10e9, 4096, 5e-6, 10e9});
  rates.reduced_bytes_per_s = 1e10;
  rates.devices.work_s = 1e-6;
  rates.devices.peer_bytes_per_s = of.peer_bytes_per_s;
  const auto blocks =
      static_cast<std::size_t>(of.kind == CollectiveKind::all_gather ? of.ranks() : 1);
  std::vector<std::unique_ptr<Doubles>> inputs;
  std::vector<std::unique_ptr<Doubles>> outputs;
  std::vector<std::unique_ptr<Planner>> planners;
  std::vector<std::unique_ptr<RankCourier>> couriers;
  std::vector<std::unique_ptr<CountingCourier>> counting;
  std::vector<std::unique_ptr<Execution>> executions;
  std::vector<RankReport> reports;
  std::vector<std::int32_t> order;
  for (std::int32_t r = 0; r < of.ranks(); ++r) {
    const auto k = static_cast<std::size_t>(r);
    const bool is_host = of.on_host.contains(r);
    std::vector<double> own(of.count);
    for (std::size_t i = 0; i < of.count; ++i) own[i] = value(r, i);
    const bool has_value = of.is_in_place || (of.kind == CollectiveKind::broadcast && r == of.root);
    inputs.push_back(std::make_unique<Doubles>(device, own, is_host));
    outputs.push_back(std::make_unique<Doubles>(
        device, has_value ? own : std::vector<double>(of.count * blocks, -1), is_host));
    const auto count = static_cast<std::int64_t>(of.count);
    const Call call = call_of(of, r, {inputs[k]->address(), count, Scalar::float64},
                              {outputs[k]->address(), count, Scalar::float64});
    planners.push_back(std::make_unique<Planner>(Rank{r}, Places(places), rates, &devices));
    couriers.push_back(std::make_unique<RankCourier>(table, r, [](std::int64_t) {}));
    std::vector<bool> is_other_host;
    for (const RankPlace& place : places) is_other_host.push_back(place.host != places[k].host);
    counting.push_back(std::make_unique<CountingCourier>(*couriers.back(), device, is_other_host));
    Planner::Planned planned = planners.back()->plan(call, 1);
    RankReport& report = reports.emplace_back();
    for (const CollectiveChoice::DeviceCandidate& one : planned.choice.on_devices) {
      report.considered +=
          std::string(one.way) + (one.lacks.empty() ? ";" : ": " + std::string(one.lacks));
    }
    executions.push_back(std::make_unique<Execution>(std::move(planned.task), *counting.back()));
    couriers.back()->tell(
        [execution = executions.back().get()](std::int64_t ticket) { execution->ended(ticket); });
    order.push_back(r);
  }
  std::ranges::shuffle(order, random);
  for (const std::int32_t r : order) {
    executions[static_cast<std::size_t>(r)]->begin();
    for (std::uint32_t s = 0; s < random() % 9; ++s) static_cast<void>(table.step());
  }
  while (table.step()) {
  }
  for (std::int32_t r = 0; r < of.ranks(); ++r) {
    const auto k = static_cast<std::size_t>(r);
    Execution& execution = *executions[k];
    EXPECT_TRUE(execution.is_over()) << "rank " << r << " waits for " << execution.waits_for();
    if (!execution.is_over()) return reports;
    execution.finish_task();
    reports[k].way = execution.way();
    reports[k].works = counting[k]->works;
    reports[k].far_sends = counting[k]->far_sends;
    reports[k].far_sends_from_device = counting[k]->far_sends_from_device;
    const std::vector<double>& got = outputs[k]->get();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double wanted = of.kind == CollectiveKind::broadcast ? value(of.root, i)
                            : of.kind == CollectiveKind::all_gather
                                ? value(static_cast<std::int32_t>(i / of.count), i % of.count)
                                : bracket(0, of.ranks(), i);
      if (std::bit_cast<std::uint64_t>(got[i]) == std::bit_cast<std::uint64_t>(wanted)) continue;
      ADD_FAILURE() << "rank " << r << ", element " << i << ": " << got[i] << ", not " << wanted;
      break;
    }
  }
  return reports;
}

}  // namespace

TEST(HostCacheRuns, a_root_copies_each_fragment_from_its_device_once) {
  // Four hosts: the root sends to two others by a binomial tree.
  const auto reports = run({.hosts = 4}, 1);
  constexpr std::int64_t fragments = 5;
  EXPECT_EQ(reports[0].way, "host cache");
  EXPECT_EQ(reports[0].far_sends, 2 * fragments);
  EXPECT_EQ(reports[0].far_sends_from_device, 0);
  EXPECT_EQ(reports[0].works, fragments) << "a copy for each fragment, and no other work";
  // One of the other leaders passes on what has come to its slots.
  std::int32_t passing = 0;
  for (std::size_t r = 2; r < reports.size(); r += 2) {
    EXPECT_EQ(reports[r].far_sends_from_device, 0) << r;
    if (reports[r].far_sends == 0) continue;
    ++passing;
    EXPECT_EQ(reports[r].way, "host cache");
    EXPECT_EQ(reports[r].works, fragments) << "the copies to its own device";
  }
  EXPECT_EQ(passing, 1);
}

TEST(HostCacheRuns, without_page_locked_memory_messages_are_staged_each_and_it_is_said_why) {
  const auto reports = run({.hosts = 4, .has_locked_memory = false}, 2);
  EXPECT_EQ(reports[0].way, "");
  EXPECT_EQ(reports[0].works, 0);
  EXPECT_EQ(reports[0].far_sends_from_device, reports[0].far_sends);
  EXPECT_NE(reports[0].considered.find("host cache: no page-locked memory"), std::string::npos)
      << reports[0].considered;
}

TEST(HostCacheRuns, ranks_of_the_own_host_get_fragments_from_there_where_the_gpus_link_is_slow) {
  const auto reports = run({.hosts = 4, .peer_bytes_per_s = 1e8}, 3);
  EXPECT_EQ(reports[0].way, "host cache for all");
  EXPECT_EQ(reports[0].works, 5);
}

TEST(HostCacheRuns, give_the_same_bits_whatever_ends_first) {
  std::mt19937 random(7);
  std::set<std::string> ways;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
    CacheRun one;
    one.kind = std::array{CollectiveKind::broadcast, CollectiveKind::all_reduce,
                          CollectiveKind::all_gather}[static_cast<std::size_t>(below(3))];
    one.hosts = 1 + below(5);
    one.ranks_of_host = 1 + below(3);
    one.root = below(static_cast<std::uint32_t>(one.ranks()));
    one.count = static_cast<std::size_t>(below(3) == 0 ? below(3) : below(4000));
    one.fragment = 8 + 8 * below(1000);
    one.algorithm =
        std::array{
            "auto", "chain", "binary", "binomial", "split_binary", "flat"}[static_cast<std::size_t>(
            below(6))];
    if (one.kind == CollectiveKind::all_reduce && below(3) == 0) one.algorithm = "scatter_gather";
    one.is_in_place = one.kind == CollectiveKind::all_reduce && below(2) == 0;
    one.peer_bytes_per_s = below(2) == 0 ? 1e8 : 350e9;
    for (std::int32_t r = 0; r < one.ranks(); ++r) {
      if (below(4) == 0) one.on_host.insert(r);
    }
    SCOPED_TRACE(seed);
    for (const RankReport& report : run(one, seed)) ways.insert(report.way);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(ways, (std::set<std::string>{"", "host cache", "host cache for all"}));
}

}  // namespace heddle::collectives
