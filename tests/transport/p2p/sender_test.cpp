#include "node-runtime/transport/p2p/sender.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include "node-runtime/device/emulated/emulated_device.hpp"
#include "tests/transport/p2p/parts.hpp"

namespace heddle::p2p {
namespace {

using Kind = NoteHeader::Kind;

/// Every second byte of `memory`, whose size is even.
Outgoing strided(const std::vector<std::byte>& memory) {
  const auto blocks = static_cast<std::int64_t>(memory.size() / 2);
  return {memory.data(), 1, Datatype::vector(blocks, 1, 2, Scalar::byte)};
}

NoteHeader grant_of(const Send& send, Path path, std::int64_t piece_bytes) {
  NoteHeader header;
  header.kind = Kind::grant;
  header.send = send.id;
  header.receive = 77;
  header.path = path;
  header.piece_bytes = piece_bytes;
  return header;
}

std::string_view text_in(const FakeWire::SentNote& note) {
  return text_of(note.payload);
}

class SenderTest : public testing::Test {
 protected:
  Parts parts;
  Sender sender{parts.shared};

  void complete(std::size_t number) {
    sender.sends().ended(parts.pieces.take(parts.wire.sent.at(number).id), std::nullopt);
    EXPECT_TRUE(sender.is_valid());
  }
};

}  // namespace

TEST_F(SenderTest, sends_a_small_message_with_its_note_until_the_receiver_s_room_is_used_up) {
  const std::vector<std::byte> memory = counted(100);
  const auto first = parts.send({memory.data(), 100, Scalar::byte}, peer, 5);
  sender.start(first);
  ASSERT_TRUE(first->is_done());
  EXPECT_EQ(first->wait().path, Path::eager);
  const auto notes = parts.wire.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].header.kind, Kind::eager);
  EXPECT_EQ(notes[0].header.tag, 5);
  EXPECT_EQ(notes[0].payload, memory);
  // 10 credits in all, 3 for each message of 100 bytes.
  for (const Kind kind : {Kind::eager, Kind::eager, Kind::announce}) {
    sender.start(parts.send({memory.data(), 100, Scalar::byte}, peer, 5));
    EXPECT_EQ(parts.wire.take_notes().at(0).header.kind, kind);
  }
  EXPECT_EQ(sender.sends().size(), 1U);
  EXPECT_TRUE(sender.is_valid());
  sender.sends().abandon(Error(ErrorCode::internal, "the test is over"));
}

TEST_F(SenderTest, sends_contiguous_memory_as_it_lies_a_few_pieces_at_a_time) {
  const std::vector<std::byte> memory = counted(600);
  const auto send = parts.send({memory.data(), 600, Scalar::byte}, peer, 0);
  sender.start(send);
  const NoteHeader announced = parts.wire.take_notes().at(0).header;
  EXPECT_EQ(announced.kind, Kind::announce);
  EXPECT_EQ(announced.bytes, 600);
  EXPECT_EQ(announced.is_contiguous, 1);
  EXPECT_TRUE(parts.wire.sent.empty()) << "not granted yet";
  sender.granted(grant_of(*send, Path::message, 100), {});
  ASSERT_EQ(parts.wire.sent.size(), static_cast<std::size_t>(direct_pieces));
  EXPECT_EQ(parts.wire.sent[1].bytes.data(), memory.data() + 100);
  EXPECT_TRUE(sender.is_valid());
  for (std::size_t piece = 0; piece < 6; ++piece) {
    EXPECT_FALSE(send->is_done());
    complete(piece);
  }
  EXPECT_EQ(send->wait().bytes, 600);
  EXPECT_TRUE(parts.requests.is_zero());
}

TEST_F(SenderTest, packs_into_its_slots_and_lets_sends_take_them_in_turns) {
  const std::vector<std::byte> memory = counted(1024);
  std::vector<std::shared_ptr<Send>> sends;
  for (int i = 0; i < 2; ++i) {
    sends.push_back(parts.send(strided(memory), peer, i));
    sender.start(sends.back());
    sender.granted(grant_of(*sends.back(), Path::message, 128), {});
  }
  EXPECT_EQ(parts.wire.sent.size(), 2U) << "as many as there are slots";
  EXPECT_EQ(parts.slots.out().used(), 2U);
  std::vector<std::int64_t> order;
  for (std::size_t piece = 0; piece < parts.wire.sent.size(); ++piece) {
    const auto bytes = parts.wire.sent[piece].bytes;
    const OperationId id = parts.wire.sent[piece].id;
    std::int64_t request = 0;
    std::int64_t begin = 0;
    parts.pieces.for_each([&](OperationId other, const Piece& one) {
      if (other != id) return;
      request = one.request;
      begin = one.range.begin;
    });
    order.push_back(request);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(bytes[i], memory[2 * (static_cast<std::size_t>(begin) + i)]);
    }
    complete(piece);
    sender.sends().serve_waiting();
    EXPECT_TRUE(sender.is_valid());
  }
  EXPECT_EQ(std::ranges::count(order, sends[0]->id), 4);
  EXPECT_EQ(std::ranges::count(order, sends[1]->id), 4);
  EXPECT_NE(std::ranges::find(order, sends[1]->id), order.end() - 4) << "not one after the other";
  EXPECT_TRUE(sends[0]->is_done() && sends[1]->is_done());
  EXPECT_EQ(parts.slots.out().used(), 0U);
}

TEST_F(SenderTest, declines_a_grant_of_places_that_it_cannot_map) {
  const std::vector<std::byte> memory = counted(1024);
  EmulatedDevice device(0, {});
  Parts with_device({&device});
  Sender here(with_device.shared);
  with_device.wire.is_one_host = true;
  const auto send = with_device.send(strided(memory), peer, 0);
  here.start(send);
  static_cast<void>(with_device.wire.take_notes());
  NoteHeader header = grant_of(*send, Path::put, 512);
  MemoryReference nowhere;
  nowhere.handle.bytes = 512;
  const auto payload = write_places({{}, nowhere, std::nullopt}, header);
  here.granted(header, payload);
  const auto notes = with_device.wire.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].header.kind, Kind::decline);
  EXPECT_EQ(notes[0].header.receive, 77);
  EXPECT_FALSE(notes[0].payload.empty()) << "why";
  EXPECT_FALSE(send->is_granted);
  EXPECT_TRUE(here.is_valid());
  here.granted(grant_of(*send, Path::message, 128), {});
  EXPECT_EQ(with_device.wire.sent.size(), 2U) << "another path is granted";
  here.sends().abandon(Error(ErrorCode::internal, "the test is over"));
}

TEST_F(SenderTest, ends_with_the_receiver_s_last_word) {
  const std::vector<std::byte> memory = counted(600);
  const auto answer = [&](Kind kind, std::string_view text) {
    const auto send = parts.send({memory.data(), 600, Scalar::byte}, peer, 0);
    sender.start(send);
    if (kind == Kind::withdrawn) sender.cancel(send->id);
    NoteHeader header;
    header.kind = kind;
    header.send = send->id;
    header.slot = static_cast<std::int32_t>(ErrorCode::usage);
    sender.answered(header, bytes_of(text));
    EXPECT_TRUE(send->is_done());
    return send;
  };
  EXPECT_EQ(answer(Kind::fetched, "")->wait().path, Path::get);
  EXPECT_EQ(failure_of(answer(Kind::refuse, "it does not fit")), "it does not fit");
  static_cast<void>(parts.wire.take_notes());
  EXPECT_TRUE(answer(Kind::withdrawn, "")->wait().is_cancelled);
  EXPECT_EQ(parts.wire.take_notes().at(1).header.kind, Kind::withdraw);
  EXPECT_EQ(sender.sends().size(), 0U);
}

TEST_F(SenderTest, fails_what_goes_to_a_lost_node_and_nothing_else) {
  const std::vector<std::byte> memory = counted(1024);
  const auto to_lost = parts.send(strided(memory), peer, 0);
  const auto to_other = parts.send({memory.data(), 600, Scalar::byte}, NodeId{2}, 0);
  sender.start(to_lost);
  sender.start(to_other);
  sender.granted(grant_of(*to_lost, Path::message, 128), {});
  EXPECT_EQ(parts.slots.out().used(), 2U);
  parts.neighbours.lost(peer);
  sender.sends().lost(peer, Error(ErrorCode::communication, "node 1 is lost"));
  EXPECT_EQ(failure_of(to_lost), "node 1 is lost");
  EXPECT_FALSE(to_other->is_done());
  EXPECT_EQ(parts.slots.out().used(), 0U);
  EXPECT_TRUE(parts.pieces.empty() && sender.is_valid());
  const auto late = parts.send({memory.data(), 8, Scalar::byte}, peer, 0);
  sender.start(late);
  EXPECT_EQ(failure_of(late), "sending to node 1, which is lost");
  sender.sends().abandon(Error(ErrorCode::internal, "the test is over"));
  EXPECT_EQ(failure_of(to_other), "the test is over");
}

TEST_F(SenderTest, tells_the_receiver_that_a_device_failed_but_keeps_the_flow_of_pieces) {
  EmulatedOptions broken;
  EmulatedDevice device(0, broken);
  Parts with_device({&device});
  Sender here(with_device.shared);
  const DeviceBuffer memory(device, 512);
  const auto send = with_device.send({memory.address(), 512, Scalar::byte}, peer, 3);
  here.start(send);
  EXPECT_EQ(with_device.wire.take_notes().at(0).header.device, 0);
  here.granted(grant_of(*send, Path::message, 128), {});
  bool is_first = true;
  const auto end = [&](const Piece& piece, const std::optional<std::string>&) {
    here.sends().ended(
        piece, std::exchange(is_first, false) ? std::optional<std::string>("burnt") : std::nullopt);
    EXPECT_TRUE(here.is_valid());
  };
  std::size_t done = 0;
  while (!send->is_done()) {
    with_device.finish_devices(end);
    ASSERT_LT(done, with_device.wire.sent.size());
    here.sends().ended(with_device.pieces.take(with_device.wire.sent[done++].id), std::nullopt);
    here.sends().serve_waiting();
  }
  EXPECT_EQ(done, 4U) << "the receiver has posted a receive for each piece";
  const auto notes = with_device.wire.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].header.kind, Kind::broken);
  EXPECT_NE(text_in(notes[0]).find("burnt"), std::string_view::npos);
  EXPECT_NE(failure_of(send).find("sending 512 bytes with tag 3 from node 0 to node 1: burnt"),
            std::string::npos);
}

// ---- expected messages -------------------------------------------------------------------------

namespace {

/// Room of the peer for 600 bytes in `pieces` pieces, which are posted.
NoteHeader room_for_600(std::int32_t tag, std::int32_t pieces) {
  NoteHeader header;
  header.kind = Kind::expect;
  header.tag = tag;
  header.bytes = 600;
  header.digest = Datatype(Scalar::byte).signature().repeated(600).digest(600);
  header.is_contiguous = 1;
  header.receive = 88;
  header.flow = 9;
  header.slot = pieces;
  header.piece_bytes = 128;
  return header;
}

}  // namespace

TEST_F(SenderTest, hears_of_rooms_with_the_words_that_come_with_them) {
  EXPECT_FALSE(sender.expects(peer, 4, ChannelId{0}));
  EXPECT_EQ(
      text_of(sender.expected(peer, room_for_600(4, 0), bytes_of(std::string_view("tile 3")))),
      "tile 3");
  EXPECT_TRUE(sender.expects(peer, 4, ChannelId{0}));
  EXPECT_FALSE(sender.expects(NodeId{2}, 4, ChannelId{0}));
  EXPECT_FALSE(sender.expects(peer, 4, ChannelId{1}));
  sender.lost(peer, Error(ErrorCode::communication, "node 1 is lost"));
  EXPECT_FALSE(sender.expects(peer, 4, ChannelId{0}));
}

TEST_F(SenderTest, sends_an_expected_message_into_the_posted_pieces_without_a_note) {
  const std::vector<std::byte> memory = counted(1200);
  for (const Outgoing& message : {Outgoing{memory.data(), 600, Scalar::byte}, strided(memory)}) {
    parts.wire.sent.clear();
    const auto send = parts.send(message, peer, 4);
    static_cast<void>(sender.expected(peer, room_for_600(4, 5), {}));
    sender.start_expected(send);
    EXPECT_TRUE(parts.wire.take_notes().empty());
    EXPECT_EQ(parts.wire.sent.at(0).flow.value(), 9);
    EXPECT_EQ(parts.wire.sent.at(0).bytes.size(), 128U);
    for (std::size_t piece = 0; piece < 5; ++piece) {
      ASSERT_LT(piece, parts.wire.sent.size());
      EXPECT_FALSE(send->is_done());
      complete(piece);
      sender.sends().serve_waiting();
    }
    EXPECT_EQ(send->wait().path, Path::message);
    EXPECT_TRUE(parts.wire.take_notes().empty());
  }
}

TEST_F(SenderTest, completes_the_posted_pieces_of_an_expected_message_that_is_empty) {
  const auto send = parts.send({nullptr, 0, Scalar::byte}, peer, 4);
  static_cast<void>(sender.expected(peer, room_for_600(4, 5), {}));
  sender.start_expected(send);
  EXPECT_EQ(send->wait().bytes, 0);
  const auto notes = parts.wire.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].header.kind, Kind::deliver);
  EXPECT_EQ(notes[0].header.receive, 88);
  ASSERT_EQ(parts.wire.sent.size(), 5U);
  EXPECT_FALSE(parts.pieces.empty());
  for (std::size_t piece = 0; piece < 4; ++piece) {
    EXPECT_TRUE(parts.wire.sent[piece].bytes.empty());
    complete(piece);
  }
  parts.neighbours.lost(peer);
  sender.lost(peer, Error(ErrorCode::communication, "node 1 is lost"));
  EXPECT_TRUE(parts.pieces.empty() && sender.is_valid()) << "the last one never ends";
}

TEST_F(SenderTest, refuses_to_send_what_does_not_fit_its_room_and_tells_the_receiver) {
  const std::vector<std::byte> memory = counted(1200);
  for (const Outgoing& message :
       {Outgoing{memory.data(), 599, Scalar::byte}, Outgoing{memory.data(), 150, Scalar::int32}}) {
    parts.wire.sent.clear();
    const auto send = parts.send(message, peer, 4);
    static_cast<void>(sender.expected(peer, room_for_600(4, 5), {}));
    sender.start_expected(send);
    EXPECT_NE(failure_of(send).find("does not fit the room of 600 bytes that node 1 has for it"),
              std::string::npos);
    const auto notes = parts.wire.take_notes();
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_EQ(notes[0].header.kind, Kind::broken);
    EXPECT_EQ(notes[0].header.receive, 88);
    EXPECT_EQ(notes[0].header.slot, static_cast<std::int32_t>(ErrorCode::usage));
    EXPECT_EQ(text_in(notes[0]), failure_of(send));
    EXPECT_EQ(parts.wire.sent.size(), 5U);
    for (std::size_t piece = 0; piece < 5; ++piece) complete(piece);
  }
  EXPECT_TRUE(parts.pieces.empty() && parts.requests.is_zero());
}

TEST_F(SenderTest, announces_an_expected_message_that_the_receiver_has_to_read) {
  parts.wire.is_one_host = true;
  const std::vector<std::byte> memory = counted(600);
  const auto send = parts.send({memory.data(), 600, Scalar::byte}, peer, 4);
  static_cast<void>(sender.expected(peer, room_for_600(4, 0), {}));
  sender.start_expected(send);
  const auto notes = parts.wire.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].header.kind, Kind::announce);
  EXPECT_EQ(notes[0].header.receive, 88);
  NoteHeader fetched;
  fetched.kind = Kind::fetched;
  fetched.send = send->id;
  sender.answered(fetched, {});
  EXPECT_EQ(send->wait().path, Path::get);
}

/// A copy in a note would wait in this node's memory for as long as the receiver does not read.
TEST_F(SenderTest, announces_a_small_expected_message_to_a_node_that_reads_late) {
  const std::vector<std::byte> memory = counted(60);
  for (const bool is_late : {false, true}) {
    parts.wire.has_late_readers = is_late;
    NoteHeader room = room_for_600(4, 0);
    room.bytes = 60;
    const auto send = parts.send({memory.data(), 60, Scalar::byte}, peer, 4);
    room.digest = send->side.digest();
    static_cast<void>(sender.expected(peer, room, {}));
    sender.start_expected(send);
    const auto notes = parts.wire.take_notes();
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_EQ(notes[0].header.kind, is_late ? Kind::announce : Kind::deliver);
    EXPECT_EQ(notes[0].payload.size(), is_late ? 0U : 60U);
    EXPECT_EQ(send->is_done(), !is_late);
    if (!is_late) continue;
    NoteHeader fetched;
    fetched.kind = Kind::fetched;
    fetched.send = send->id;
    sender.answered(fetched, {});
    EXPECT_TRUE(send->is_done());
  }
}

TEST_F(SenderTest, sends_empty_pieces_where_a_device_fails_with_an_expected_message) {
  EmulatedDevice device(0, {});
  Parts with_device({&device});
  Sender here(with_device.shared);
  const DeviceBuffer memory(device, 600);
  const auto send = with_device.send({memory.address(), 600, Scalar::byte}, peer, 4);
  static_cast<void>(here.expected(peer, room_for_600(4, 5), {}));
  here.start_expected(send);
  bool is_first = true;
  std::size_t done = 0;
  while (!send->is_done()) {
    with_device.finish_devices([&](const Piece& piece, const std::optional<std::string>&) {
      here.sends().ended(piece, std::exchange(is_first, false) ? std::optional<std::string>("burnt")
                                                               : std::nullopt);
    });
    ASSERT_LT(done, with_device.wire.sent.size());
    EXPECT_TRUE(with_device.wire.sent[done].bytes.empty()) << done;
    here.sends().ended(with_device.pieces.take(with_device.wire.sent[done++].id), std::nullopt);
    here.sends().serve_waiting();
    EXPECT_TRUE(here.is_valid());
  }
  EXPECT_EQ(done, 5U);
  EXPECT_NE(failure_of(send).find("burnt"), std::string::npos);
  const auto notes = with_device.wire.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].header.kind, Kind::broken);
  EXPECT_EQ(notes[0].header.slot, static_cast<std::int32_t>(ErrorCode::communication));
}

}  // namespace heddle::p2p
