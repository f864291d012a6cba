#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/transport/p2p/cluster.hpp"
#include "tests/transport/p2p/device_place.hpp"

/// Work of an endpoint's devices that belongs to no message.
namespace heddle::p2p {
namespace {

EmulatedOptions roomy_device() {
  EmulatedOptions options;
  options.memory_bytes = 1 << 20;
  options.fill_allocations = true;
  return options;
}

std::string end_of(const Request& request) {
  try {
    static_cast<void>(request.wait());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void copy_on(const WorkPlace& place, std::byte* to, const std::byte* from, std::size_t bytes) {
  const Device* const device = &place.stream.device();
  place.stream.copy({to, device}, {from, device}, bytes);
}

}  // namespace

TEST(DeviceWorks, run_on_a_stream_of_the_device_and_end_as_requests_do) {
  Cluster cluster(2, 4, small_options(), {1, roomy_device()});
  {
    Device& device = cluster.device(0, 0);
    const DeviceBuffer memory(device, 512);
    std::vector<std::byte> bytes(256, std::byte{7});
    copy(device, memory.address(), bytes.data(), 256, true);
    std::int32_t ends = 0;
    const Request work = cluster.at(0).work(
        {LaneId{0},
         {},
         [&](const WorkPlace& place) {
           copy_on(place, memory.address() + 256, memory.address(), 256);
         }},
        [&](const Status&, const Error* failure) { ends += failure == nullptr ? 1 : 100; });
    EXPECT_FALSE(cluster.at(0).is_idle());
    ASSERT_TRUE(cluster.run_until([&] { return work.done(); }));
    EXPECT_EQ(end_of(work), "");
    EXPECT_EQ(ends, 1);
    std::vector<std::byte> seen(256);
    copy(device, seen.data(), memory.address() + 256, 256, false);
    EXPECT_EQ(seen, bytes);
  }
  ASSERT_TRUE(cluster.close());
}

TEST(DeviceWorks, that_fail_say_why_and_leave_the_next_ones_alone) {
  EmulatedOptions faulty = roomy_device();
  faulty.faults.fail_copy = 1;
  Cluster cluster(1, 4, small_options(), {1, faulty});
  {
    const DeviceBuffer memory(cluster.device(0, 0), 512);
    const auto copying = [&](const WorkPlace& place) {
      copy_on(place, memory.address() + 256, memory.address(), 256);
    };
    const Request failing = cluster.at(0).work({LaneId{0}, {}, copying});
    ASSERT_TRUE(cluster.run_until([&] { return failing.done(); }));
    EXPECT_NE(end_of(failing).find("injected fault in copy 1"), std::string::npos);
    const Request wrong = cluster.at(0).work({LaneId{0}, {}, [&](const WorkPlace& place) {
                                                copying(place);
                                                throw Error(ErrorCode::usage, "not this one");
                                              }});
    ASSERT_TRUE(cluster.run_until([&] { return wrong.done(); }));
    EXPECT_EQ(end_of(wrong), "not this one");
    const Request next = cluster.at(0).work({LaneId{0}, {}, copying});
    ASSERT_TRUE(cluster.run_until([&] { return next.done(); }));
    EXPECT_EQ(end_of(next), "");
  }
  ASSERT_TRUE(cluster.close());
}

TEST(DeviceWorks, reach_memory_that_another_node_has_referred_to) {
  Cluster cluster(2, 4, small_options(), {1, roomy_device()});
  {
    const DeviceBuffer there(cluster.device(1, 0), 512);
    const DeviceBuffer here(cluster.device(0, 0), 512);
    std::vector<std::byte> bytes(256, std::byte{9});
    copy(cluster.device(1, 0), there.address() + 100, bytes.data(), 256, true);
    const auto referral =
        std::make_shared<Referral>(Referral{there.address() + 100, {NodeId{0}, NodeId{1}}});
    const Request referring = cluster.at(1).refer(referral);
    ASSERT_TRUE(cluster.run_until([&] { return referring.done(); }));
    ASSERT_TRUE(referral->reference.has_value());
    const Request work = cluster.at(0).work(
        {LaneId{0}, {{NodeId{1}, *referral->reference}}, [&](const WorkPlace& place) {
           const Spot& from = place.remote[0];
           place.stream.copy({here.address(), &cluster.device(0, 0)}, {from.address, from.device},
                             256);
         }});
    ASSERT_TRUE(cluster.run_until([&] { return work.done(); }));
    EXPECT_EQ(end_of(work), "");
    std::vector<std::byte> seen(256);
    copy(cluster.device(0, 0), seen.data(), here.address(), 256, false);
    EXPECT_EQ(seen, bytes);
    // The other node lets go of it when the memory is to be freed.
    const Request releasing = cluster.at(1).release(there.address());
    ASSERT_TRUE(cluster.run_until([&] { return releasing.done(); }));
    EXPECT_EQ(cluster.at(0).statistics().mappings.opened, 1);
    EXPECT_EQ(cluster.at(0).statistics().mappings.closed, 1);
  }
  ASSERT_TRUE(cluster.close());
}

TEST(DeviceWorks, whose_mapping_is_refused_fail_or_say_so) {
  Cluster::Devices wanted{1, roomy_device()};
  wanted.refusing_node = 0;
  Cluster cluster(2, 4, small_options(), wanted);
  {
    const DeviceBuffer there(cluster.device(1, 0), 512);
    const auto referral = std::make_shared<Referral>(Referral{there.address(), {NodeId{0}}});
    const Request referring = cluster.at(1).refer(referral);
    ASSERT_TRUE(cluster.run_until([&] { return referring.done(); }));
    std::int32_t calls = 0;
    DeviceWork work{
        LaneId{0}, {{NodeId{1}, *referral->reference}}, [&](const WorkPlace&) { ++calls; }};
    const Request failing = cluster.at(0).work(work);
    ASSERT_TRUE(cluster.run_until([&] { return failing.done(); }));
    EXPECT_EQ(end_of(failing), "mappings are refused here");
    work.refusal = std::make_shared<std::string>();
    const Request telling = cluster.at(0).work(work);
    ASSERT_TRUE(cluster.run_until([&] { return telling.done(); }));
    EXPECT_EQ(end_of(telling), "");
    EXPECT_EQ(*work.refusal, "mappings are refused here");
    EXPECT_EQ(calls, 0);
    const Request releasing = cluster.at(1).release(there.address());
    ASSERT_TRUE(cluster.run_until([&] { return releasing.done(); }));
  }
  ASSERT_TRUE(cluster.close());
}

TEST(DeviceWorks, await_events_of_other_streams_until_they_are_cancelled) {
  Cluster cluster(1, 4, small_options(), {1, roomy_device()});
  {
    Device& device = cluster.device(0, 0);
    auto* const word = new (device.allocate_host(64)) std::atomic<std::uint64_t>(0);
    const auto stream = device.create_stream();
    const auto event = [&] {
      std::shared_ptr<Event> made = device.create_event(EventTiming::off);
      stream->record(*made);
      return made;
    };
    stream->await_word(*word, 1);
    const Request awaiting = cluster.at(0).work({LaneId{0}, {}, nullptr, event()});
    const Request cancelled = cluster.at(0).work({LaneId{0}, {}, nullptr, event()});
    for (int k = 0; k < 100; ++k) static_cast<void>(cluster.at(0).progress());
    EXPECT_FALSE(awaiting.done() || cancelled.done());
    cancelled.cancel();
    ASSERT_TRUE(cluster.run_until([&] { return cancelled.done(); }));
    EXPECT_TRUE(cancelled.wait().is_cancelled);
    EXPECT_FALSE(awaiting.done());
    word->store(1, std::memory_order_release);
    ASSERT_TRUE(cluster.run_until([&] { return awaiting.done(); }));
    EXPECT_EQ(end_of(awaiting), "");
    stream->synchronize();
    device.free_host(word);
  }
  ASSERT_TRUE(cluster.close());
}

TEST(DeviceWorks, of_wrong_calls_are_refused) {
  Cluster cluster(1, 4, small_options(), {1, roomy_device()});
  {
    EXPECT_THROW(static_cast<void>(cluster.at(0).work({LaneId{1}, {}, [](const WorkPlace&) {}})),
                 Error);
    int host = 0;
    const auto referral = std::make_shared<Referral>(
        Referral{reinterpret_cast<const std::byte*>(&host), {NodeId{0}}});
    const Request referring = cluster.at(0).refer(referral);
    ASSERT_TRUE(cluster.run_until([&] { return referring.done(); }));
    EXPECT_NE(end_of(referring).find("is no device's of this node"), std::string::npos);
  }
  ASSERT_TRUE(cluster.close());
}

}  // namespace heddle::p2p
