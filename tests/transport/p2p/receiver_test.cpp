#include "node-runtime/transport/p2p/receiver.hpp"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "node-runtime/device/emulated/emulated_device.hpp"
#include "node-runtime/transport/datatype/signature.hpp"
#include "tests/transport/p2p/parts.hpp"

namespace heddle::p2p {
namespace {

using Kind = NoteHeader::Kind;

constexpr Pattern from_peer{peer, 4, ChannelId{0}};

/// The header of a message of `bytes` bytes.
NoteHeader message(Kind kind, std::int64_t bytes, std::int64_t send = 41) {
  NoteHeader header;
  header.kind = kind;
  header.tag = 4;
  header.bytes = bytes;
  header.send = send;
  header.is_contiguous = 1;
  header.digest = Datatype(Scalar::byte).signature().repeated(bytes).digest(bytes);
  return header;
}

class ReceiverTest : public testing::Test {
 protected:
  Parts parts;
  Receiver receiver{parts.shared};
  std::vector<std::byte> target = std::vector<std::byte>(1024);

  std::shared_ptr<Receive> start(std::int64_t bytes) {
    auto receive = parts.receive({target.data(), bytes, Scalar::byte}, from_peer);
    receiver.start(receive);
    EXPECT_TRUE(receiver.is_valid());
    return receive;
  }
  /// Room for half of the bytes of `target`, every second one.
  std::shared_ptr<Receive> start_strided() {
    const Datatype type = Datatype::vector(512, 1, 2, Scalar::byte);
    auto receive = parts.receive({target.data(), 1, type}, from_peer);
    receiver.start(receive);
    return receive;
  }
  /// An eager message has taken room before it is matched.
  void eager_arrives(std::span<const std::byte> bytes) {
    parts.credits.room_taken(peer, credits_for(static_cast<std::int64_t>(bytes.size())));
    receiver.message_arrived(peer, message(Kind::eager, static_cast<std::int64_t>(bytes.size())),
                             bytes);
    EXPECT_TRUE(receiver.is_valid());
  }
};

}  // namespace

TEST_F(ReceiverTest, copies_an_eager_message_whether_its_receive_is_there_or_comes_later) {
  const std::vector<std::byte> source = counted(100);
  for (const bool is_posted_first : {true, false}) {
    std::ranges::fill(target, std::byte{0});
    const std::int64_t unexpected = receiver.unexpected();
    std::shared_ptr<Receive> receive;
    if (is_posted_first) receive = start(200);
    eager_arrives(source);
    if (!is_posted_first) receive = start(200);
    ASSERT_TRUE(receive->is_done());
    EXPECT_EQ(receive->wait().bytes, 100);
    EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin()));
    EXPECT_EQ(target[100], std::byte{0}) << "behind the message";
    EXPECT_EQ(receiver.unexpected() - unexpected, is_posted_first ? 0 : 1);
    EXPECT_EQ(parts.credits.held(peer), 0);
  }
}

TEST_F(ReceiverTest, refuses_what_does_not_fit_and_tells_the_sender) {
  const auto truncated = start(100);
  receiver.message_arrived(peer, message(Kind::announce, 600), {});
  const auto notes = parts.wire.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].header.kind, Kind::refuse);
  EXPECT_EQ(notes[0].header.send, 41);
  EXPECT_NE(failure_of(truncated).find("would be truncated"), std::string::npos);
  const auto unlike = start(600);
  NoteHeader header = message(Kind::announce, 600);
  header.digest ^= 1U;
  receiver.message_arrived(peer, header, {});
  EXPECT_NE(failure_of(unlike).find("the signatures of the message"), std::string::npos);
  EXPECT_TRUE(receiver.is_valid() && parts.requests.is_zero());
}

TEST_F(ReceiverTest, receives_into_contiguous_memory_as_it_lies) {
  const auto receive = start(600);
  receiver.message_arrived(peer, message(Kind::announce, 600), {});
  const NoteHeader grant = parts.wire.take_notes().at(0).header;
  EXPECT_EQ(grant.kind, Kind::grant);
  EXPECT_EQ(grant.path, Path::message);
  ASSERT_EQ(parts.wire.received.size(), 1U) << "in one piece";
  EXPECT_EQ(parts.wire.received[0].bytes.data(), target.data());
  EXPECT_EQ(parts.wire.received[0].flow.value(), grant.flow);
  EXPECT_TRUE(receiver.is_valid());
  receiver.receives().ended(parts.pieces.take(parts.wire.received[0].id), std::nullopt);
  EXPECT_EQ(receive->wait().bytes, 600);
  EXPECT_TRUE(receiver.is_valid());
}

TEST_F(ReceiverTest, unpacks_from_its_slots_and_lets_the_next_message_wait_for_them) {
  const std::vector<std::byte> source = counted(512);
  const auto first = start_strided();
  const auto second = start_strided();
  receiver.message_arrived(peer, message(Kind::announce, 512, 1), {});
  receiver.message_arrived(peer, message(Kind::announce, 512, 2), {});
  EXPECT_EQ(parts.wire.take_notes().size(), 1U) << "3 slots, of which a message takes 2";
  EXPECT_EQ(parts.slots.in().used(), 2U);
  for (std::size_t piece = 0; piece < 8; ++piece) {
    ASSERT_LT(piece, parts.wire.received.size());
    const FakeWire::Transfer transfer = parts.wire.received[piece];
    ASSERT_EQ(transfer.bytes.size(), 128U);
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(piece % 4 * 128), 128,
                transfer.bytes.begin());
    receiver.receives().ended(parts.pieces.take(transfer.id), std::nullopt);
    receiver.serve_waiting();
    EXPECT_TRUE(receiver.is_valid());
    EXPECT_EQ(first->is_done(), piece >= 3);
  }
  EXPECT_TRUE(second->is_done());
  for (std::size_t i = 0; i < source.size(); ++i) ASSERT_EQ(target[2 * i], source[i]);
  EXPECT_EQ(parts.slots.in().used(), 0U);
}

TEST_F(ReceiverTest, reads_the_sender_s_memory_and_takes_the_wire_where_the_system_refuses) {
  parts.wire.is_one_host = true;
  const std::vector<std::byte> source = counted(600);
  NoteHeader header = message(Kind::announce, 600);
  header.begin = std::bit_cast<std::int64_t>(source.data());
  for (const bool is_refused : {false, true}) {
    if (is_refused) parts.wire.reads_left = 0;
    const auto receive = start(600);
    receiver.message_arrived(peer, header, {});
    EXPECT_TRUE(parts.wire.take_notes().empty()) << "nothing is granted";
    int reads = 0;
    while (receiver.read_on()) {
      ++reads;
      EXPECT_TRUE(receiver.is_valid());
    }
    const NoteHeader answer = parts.wire.take_notes().at(0).header;
    if (is_refused) {
      EXPECT_EQ(answer.kind, Kind::grant);
      EXPECT_EQ(answer.path, Path::message);
      EXPECT_EQ(parts.neighbours.of(peer).not_read_here, "reading is refused here");
      continue;
    }
    EXPECT_EQ(reads, 3) << "pieces of 200 bytes";
    EXPECT_EQ(answer.kind, Kind::fetched);
    EXPECT_EQ(receive->wait().path, Path::get);
    EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin()));
  }
  receiver.receives().abandon(Error(ErrorCode::internal, "the test is over"));
}

TEST_F(ReceiverTest, takes_another_path_when_the_sender_declines) {
  EmulatedDevice device(0, {});
  Parts with_device({&device});
  with_device.wire.is_one_host = true;
  with_device.neighbours.introduced(peer, {});
  Receiver here(with_device.shared);
  const DeviceBuffer memory(device, 600);
  const auto receive = with_device.receive({memory.address(), 600, Scalar::byte}, from_peer);
  here.start(receive);
  NoteHeader header = message(Kind::announce, 600);
  header.is_locked = 1;
  here.message_arrived(peer, header, {});
  const auto notes = with_device.wire.take_notes();
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0].header.kind, Kind::introduce) << "before a grant names a device";
  ASSERT_EQ(notes[1].header.kind, Kind::grant);
  EXPECT_EQ(notes[1].header.path, Path::ring);
  EXPECT_EQ(with_device.slots.ring(LaneId{0}).used(), 2U) << "of 3; a message takes 2";
  NoteHeader decline;
  decline.kind = Kind::decline;
  decline.receive = receive->id;
  here.declined(peer, decline, "no such device");
  EXPECT_EQ(with_device.slots.ring(LaneId{0}).used(), 0U);
  const NoteHeader again = with_device.wire.take_notes().at(0).header;
  EXPECT_EQ(again.path, Path::message);
  EXPECT_TRUE(here.is_valid());
  here.receives().abandon(Error(ErrorCode::internal, "the test is over"));
}

TEST_F(ReceiverTest, forgets_an_announcement_that_is_withdrawn_in_time) {
  receiver.message_arrived(peer, message(Kind::announce, 600, 9), {});
  NoteHeader wish;
  wish.kind = Kind::withdraw;
  wish.send = 9;
  receiver.withdraw(peer, wish);
  const NoteHeader answer = parts.wire.take_notes().at(0).header;
  EXPECT_EQ(answer.kind, Kind::withdrawn);
  EXPECT_EQ(answer.send, 9);
  EXPECT_EQ(receiver.arrivals(), 0U);
  receiver.withdraw(peer, wish);
  EXPECT_TRUE(parts.wire.take_notes().empty()) << "it is gone";
  const auto receive = start(600);
  EXPECT_FALSE(receive->is_done());
  receiver.cancel(receive->id);
  EXPECT_TRUE(receive->wait().is_cancelled);
  EXPECT_TRUE(receiver.is_valid());
}

TEST_F(ReceiverTest, fails_what_only_a_lost_node_can_send) {
  const auto under_way = start_strided();
  const auto posted = start(100);
  auto of_any =
      parts.receive({target.data(), 100, Scalar::byte}, {Pattern::any_source, 4, ChannelId{0}});
  receiver.start(of_any);
  receiver.message_arrived(peer, message(Kind::announce, 512), {});
  EXPECT_EQ(parts.slots.in().used(), 2U);
  parts.neighbours.lost(peer);
  receiver.lost(peer, Error(ErrorCode::communication, "node 1 is lost"));
  EXPECT_EQ(failure_of(under_way), "node 1 is lost");
  EXPECT_EQ(failure_of(posted), "node 1 is lost");
  EXPECT_FALSE(of_any->is_done()) << "others may send to it";
  EXPECT_EQ(parts.slots.in().used(), 0U);
  EXPECT_TRUE(parts.pieces.empty() && receiver.is_valid());
  receiver.receives().abandon(Error(ErrorCode::internal, "the test is over"));
}

// ---- expected messages -------------------------------------------------------------------------

namespace {

NoteHeader for_room(Kind kind, const Receive& receive, std::int64_t bytes) {
  NoteHeader header = message(kind, bytes);
  header.receive = receive.id;
  return header;
}

class ExpectingReceiverTest : public ReceiverTest {
 protected:
  std::shared_ptr<Receive> expect(std::int64_t bytes) {
    auto receive = parts.receive({target.data(), bytes, Scalar::byte}, {});
    receiver.expect(receive, {peer, 4, ChannelId{0}}, bytes_of(std::string_view("tile 3")));
    EXPECT_TRUE(receiver.is_valid());
    return receive;
  }
  void end_piece(std::size_t number, bool is_blank) {
    receiver.ended(parts.pieces.take(parts.wire.received.at(number).id), std::nullopt, is_blank);
    EXPECT_TRUE(receiver.is_valid());
  }
};

}  // namespace

TEST_F(ExpectingReceiverTest, posts_pieces_for_another_host_before_it_tells_of_the_room) {
  const auto receive = expect(600);
  const auto notes = parts.wire.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  const NoteHeader& said = notes[0].header;
  EXPECT_EQ(said.kind, Kind::expect);
  EXPECT_EQ(said.bytes, 600);
  EXPECT_EQ(said.receive, receive->id);
  EXPECT_EQ(said.slot, 5);
  EXPECT_EQ(said.piece_bytes, 128);
  EXPECT_EQ(text_of(notes[0].payload), "tile 3");
  ASSERT_EQ(parts.wire.received.size(), 5U);
  EXPECT_EQ(parts.wire.received[1].bytes.data(), target.data() + 128);
  EXPECT_EQ(parts.wire.received[1].flow.value(), said.flow);
  EXPECT_EQ(receiver.receives().posted_ahead(), 5);
  for (const std::size_t piece : {4U, 0U, 2U, 1U, 3U}) {
    EXPECT_FALSE(receive->is_done());
    end_piece(piece, false);
  }
  EXPECT_EQ(receive->wait().bytes, 600);
  EXPECT_EQ(receive->wait().path, Path::message);
  EXPECT_EQ(receiver.receives().posted_ahead(), 0);
  EXPECT_TRUE(parts.wire.take_notes().empty()) << "nothing is answered";
}

TEST_F(ExpectingReceiverTest, posts_no_pieces_on_its_host_for_short_messages_or_beyond_the_bound) {
  const auto pieces_for = [&](std::int64_t bytes) {
    parts.wire.received.clear();
    static_cast<void>(expect(bytes));
    EXPECT_EQ(parts.wire.take_notes().at(0).header.slot,
              static_cast<std::int32_t>(parts.wire.received.size()));
    return parts.wire.received.size();
  };
  EXPECT_EQ(pieces_for(100), 0U);
  EXPECT_EQ(pieces_for(101), 1U);
  parts.options.posted_pieces_max = 2;
  EXPECT_EQ(pieces_for(300), 0U);
  EXPECT_EQ(pieces_for(101), 1U);
  EXPECT_EQ(pieces_for(101), 0U);
  parts.options.posted_pieces_max = 100;
  parts.wire.is_one_host = true;
  EXPECT_EQ(pieces_for(600), 0U);
  receiver.receives().abandon(Error(ErrorCode::internal, "the test is over"));
}

TEST_F(ExpectingReceiverTest, follows_a_note_when_the_last_posted_piece_is_back) {
  for (const bool comes_early : {true, false}) {
    SCOPED_TRACE(comes_early);
    parts.wire.received.clear();
    const auto empty = expect(200);
    const auto broken = expect(200);
    NoteHeader why = for_room(Kind::broken, *broken, 0);
    why.slot = static_cast<std::int32_t>(ErrorCode::usage);
    const auto notes = [&] {
      receiver.room_note(for_room(Kind::deliver, *empty, 0), {});
      receiver.sender_broke(why, bytes_of(std::string_view("it does not fit")));
    };
    if (comes_early) notes();
    end_piece(0, true);
    end_piece(2, false);  // the sender failed behind this piece
    EXPECT_FALSE(empty->is_done() || broken->is_done());
    end_piece(1, true);
    end_piece(3, true);
    EXPECT_EQ(empty->is_done(), comes_early);
    if (!comes_early) notes();
    ASSERT_TRUE(empty->is_done() && broken->is_done());
    EXPECT_EQ(empty->wait().bytes, 0);
    EXPECT_EQ(failure_of(broken), "it does not fit");
    EXPECT_TRUE(parts.pieces.empty() && receiver.is_valid());
  }
}

TEST_F(ExpectingReceiverTest, takes_what_is_delivered_read_or_written_by_a_device) {
  parts.wire.is_one_host = true;
  const std::vector<std::byte> source = counted(600);
  const auto delivered = expect(100);
  receiver.room_note(for_room(Kind::deliver, *delivered, 100), std::span(source).first(100));
  EXPECT_EQ(delivered->wait().path, Path::eager);
  EXPECT_TRUE(std::equal(source.begin(), source.begin() + 100, target.begin()));
  EXPECT_EQ(parts.credits.held(peer), 0) << "it has taken no room";
  const auto read = expect(600);
  NoteHeader announced = for_room(Kind::announce, *read, 600);
  announced.begin = std::bit_cast<std::int64_t>(source.data());
  receiver.room_note(announced, {});
  while (receiver.read_on()) EXPECT_TRUE(receiver.is_valid());
  EXPECT_EQ(read->wait().path, Path::get);
  EXPECT_TRUE(std::equal(source.begin(), source.end(), target.begin()));
  const auto written = expect(600);
  NoteHeader filled = for_room(Kind::filled, *written, 600);
  filled.begin = 0;
  receiver.receives().filled(peer, filled);
  EXPECT_EQ(written->wait().path, Path::put);
  EXPECT_TRUE(parts.requests.is_zero() && receiver.is_valid());
}

TEST_F(ExpectingReceiverTest, fails_with_its_sender_and_is_not_cancelled) {
  const auto receive = expect(600);
  receiver.cancel(receive->id);
  EXPECT_FALSE(receive->is_done());
  const Error why(ErrorCode::communication, "node 1 is lost");
  parts.neighbours.lost(peer);
  receiver.lost(peer, why);
  EXPECT_EQ(failure_of(receive), "node 1 is lost");
  EXPECT_TRUE(parts.pieces.empty() && receiver.is_valid());
  EXPECT_EQ(receiver.receives().posted_ahead(), 0);
  EXPECT_EQ(failure_of(expect(600)), "expecting a message of node 1, which is lost");
}

}  // namespace heddle::p2p
