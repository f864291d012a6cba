#include "node-runtime/transport/p2p/neighbourhood.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "node-runtime/device/emulated/emulated_device.hpp"
#include "tests/transport/p2p/parts.hpp"

namespace heddle::p2p {
namespace {

class NeighbourhoodTest : public testing::Test {
 protected:
  EmulatedDevice device{0, {}};
  Parts parts{{&device}};
  Neighbourhood& neighbours = parts.neighbours;

  NeighbourhoodTest() { parts.wire.is_one_host = true; }
  ~NeighbourhoodTest() override { EXPECT_TRUE(neighbours.is_valid()); }

  [[nodiscard]] std::vector<NoteHeader::Kind> kinds() {
    std::vector<NoteHeader::Kind> all;
    for (const auto& note : parts.wire.take_notes()) all.push_back(note.header.kind);
    return all;
  }
  /// An allocation's release, as Endpoint makes it.
  [[nodiscard]] std::shared_ptr<Release> release_of(const DeviceBuffer& memory) {
    auto release = std::make_shared<Release>();
    release->lane = LaneId{0};
    release->handle = refer_to(device, memory.address()).handle;
    release->begin = memory.address();
    static_cast<void>(parts.requests.begin(false));
    return release;
  }
};

using Kind = NoteHeader::Kind;
using Kinds = std::vector<NoteHeader::Kind>;

}  // namespace

TEST_F(NeighbourhoodTest, introduces_its_devices_once_and_awaits_the_others) {
  neighbours.introduce(peer);
  neighbours.introduce(peer);
  EXPECT_EQ(kinds(), Kinds{Kind::introduce});
  neighbours.meet();
  EXPECT_EQ(kinds(), Kinds{Kind::introduce}) << "the second peer";
  EXPECT_EQ(neighbours.unknown(), (std::vector<NodeId>{NodeId{1}, NodeId{2}}));
  neighbours.introduced(peer, {});
  neighbours.lost(NodeId{2});
  EXPECT_TRUE(neighbours.unknown().empty()) << "a lost node is not awaited";
}

TEST_F(NeighbourhoodTest, remembers_which_rings_it_cannot_map) {
  neighbours.meet();
  DeviceIntroduction theirs;
  theirs.device.bytes[0] = 7;
  theirs.ring.handle.bytes = 512;
  neighbours.introduced(peer, bytes_of(theirs));
  const auto& refused = neighbours.of(peer).not_mapped_here;
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused.begin()->first, (DevicePair{0, 0}));
  EXPECT_FALSE(refused.begin()->second.empty()) << "why";
}

TEST_F(NeighbourhoodTest, frees_memory_when_every_node_that_was_told_of_it_has_let_go) {
  const DeviceBuffer memory(device, 512);
  const Side side = parts.sides.of(Outgoing{memory.address(), 512, Scalar::byte});
  EXPECT_FALSE(neighbours.may_be_mapped_by(peer, side));
  for (const NodeId node : {NodeId{1}, NodeId{2}}) {
    EXPECT_TRUE(neighbours.reference_to(side, node).has_value());
    EXPECT_TRUE(neighbours.may_be_mapped_by(node, side));
  }
  const auto release = release_of(memory);
  EXPECT_TRUE(release->is_of(side));
  neighbours.release(release);
  EXPECT_EQ(kinds(), (Kinds{Kind::release, Kind::release}));
  EXPECT_TRUE(neighbours.is_valid());
  neighbours.released(peer, {release->handle.device, release->handle.allocation});
  EXPECT_FALSE(release->is_done());
  neighbours.lost(NodeId{2});
  EXPECT_TRUE(release->is_done()) << "a lost node holds nothing";
  EXPECT_FALSE(neighbours.may_be_mapped_by(peer, side)) << "it is told again";
  EXPECT_TRUE(parts.requests.is_zero());
}

TEST_F(NeighbourhoodTest, is_closed_when_all_that_know_its_devices_have_said_goodbye) {
  neighbours.introduce(peer);
  neighbours.introduced(peer, {});
  static_cast<void>(kinds());
  EXPECT_FALSE(neighbours.is_closed());
  neighbours.close();
  EXPECT_EQ(kinds(), Kinds{Kind::goodbye});
  EXPECT_FALSE(neighbours.is_closed());
  neighbours.said_goodbye(peer);
  EXPECT_TRUE(neighbours.is_closed());
  neighbours.introduced(NodeId{2}, {});
  EXPECT_EQ(kinds(), Kinds{Kind::goodbye}) << "one that comes late hears it, too";
}

}  // namespace heddle::p2p
