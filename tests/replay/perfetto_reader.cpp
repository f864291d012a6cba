#include "tests/replay/perfetto_reader.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace heddle::replay::test {

PerfettoTrace::PerfettoTrace(std::string bytes) : bytes_(std::move(bytes)) {
  for (const ProtoReader& packet : ProtoReader(bytes_).messages(1)) read_packet(packet);
  check_ends();
  std::ranges::stable_sort(slices_, {}, &Slice::start);
}

std::vector<std::string> PerfettoTrace::names(const std::string& track) const {
  std::vector<std::string> names;
  for (const Slice& slice : slices_) {
    if (slice.track == track) names.push_back(slice.name);
  }
  return names;
}

const PerfettoTrace::Slice& PerfettoTrace::at(const std::string& track, std::size_t i) const {
  for (const Slice& slice : slices_) {
    if (slice.track == track && i-- == 0) return slice;
  }
  throw std::runtime_error("no such slice on " + track);
}

std::vector<std::pair<std::uint64_t, std::int64_t>> PerfettoTrace::values(
    const std::string& track) const {
  const auto found = values_.find(track);
  return found == values_.end() ? std::vector<std::pair<std::uint64_t, std::int64_t>>()
                                : found->second;
}

std::multiset<std::string> PerfettoTrace::flows() const {
  const auto label = [](const Slice& slice) { return slice.track.substr(5, 1) + " " + slice.name; };
  std::map<std::uint64_t, std::string> from;
  std::multiset<std::string> all;
  for (const Slice& slice : slices_) {
    for (const std::uint64_t id : slice.flows_out) from[id] = label(slice);
  }
  for (const Slice& slice : slices_) {
    for (const std::uint64_t id : slice.flows_in) all.insert(from[id] + " -> " + label(slice));
  }
  return all;
}

void PerfettoTrace::read_packet(const ProtoReader& packet) {
  const auto id = packet.number(10);
  ASSERT_TRUE(id && *id != 0) << "a packet of no sequence";
  const auto [entry, is_first] = sequences_.try_emplace(*id);
  Sequence& sequence = entry->second;
  const std::uint64_t flags = packet.number(13).value_or(0);
  EXPECT_EQ((flags & 1U) != 0, is_first) << "the state is cleared once, by the first packet";
  if (const auto texts = packet.message(12)) read_texts(sequence, *texts);
  if (const auto track = packet.message(60)) read_track(*track);
  const auto event = packet.message(11);
  if (!event) return;
  EXPECT_EQ(flags, 2U) << "events need the state";
  ASSERT_TRUE(packet.number(8)) << "an event without a time";
  read_event(sequence, *packet.number(8), *event);
}

void PerfettoTrace::read_track(const ProtoReader& track) {
  const auto uuid = track.number(1);
  ASSERT_TRUE(uuid && *uuid != 0);
  Track made;
  if (const auto parent = track.number(5)) {
    ASSERT_TRUE(tracks_.contains(*parent)) << "a track before its parent";
    made.path = tracks_.at(*parent).path + "/";
  }
  if (const auto process = track.message(3)) {
    EXPECT_EQ(process->number(1), uuid);
    made.path += process->text(6).value_or("?");
  } else if (const auto thread = track.message(4)) {
    EXPECT_TRUE(threads_.emplace(*thread->number(1), *thread->number(2)).second);
    EXPECT_EQ(track.number(5), thread->number(1)) << "a thread of its process";
    const auto before = static_cast<std::int64_t>(ranks_[*track.number(5)].first++);
    EXPECT_EQ(thread->number(3), static_cast<std::uint64_t>(before)) << "shown in this order";
    made.path += thread->text(5).value_or("?");
  } else {
    made.is_counter = track.message(8).has_value();
    made.path += track.text(2).value_or("?");
    if (!made.is_counter) {
      EXPECT_EQ(track.number(12), static_cast<std::uint64_t>(ranks_[*track.number(5)].second++));
    }
  }
  track_order_.push_back(made.path);
  EXPECT_TRUE(tracks_.emplace(*uuid, made).second) << "track " << *uuid << " is there twice";
}

void PerfettoTrace::read_texts(Sequence& sequence, const ProtoReader& data) {
  for (const std::uint64_t kind : {1U, 2U, 3U, 29U}) {
    for (const ProtoReader& text : data.messages(kind)) {
      const auto iid = text.number(1);
      ASSERT_TRUE(iid && *iid != 0);
      EXPECT_TRUE(sequence.texts[kind].emplace(*iid, text.text(2).value_or("")).second)
          << "text " << *iid << " is sent twice";
    }
  }
}

PerfettoTrace::Slice PerfettoTrace::begun(const Sequence& sequence, const Track& track,
                                          std::uint64_t time, const ProtoReader& event) const {
  const auto text = [&](std::uint64_t kind, std::optional<std::uint64_t> iid) {
    const auto& texts = sequence.texts.at(kind);
    return texts.at(iid.value_or(0));
  };
  Slice slice;
  slice.track = track.path;
  slice.category = text(1, event.number(3));
  slice.name = text(2, event.number(10));
  slice.start = time;
  slice.flows_out = event.numbers(47);
  EXPECT_TRUE(event.numbers(48).empty());
  for (const ProtoReader& argument : event.messages(4)) {
    const auto number = argument.number(4);
    slice.arguments[text(3, argument.number(1))] =
        number ? std::to_string(static_cast<std::int64_t>(*number)) : text(29, argument.number(17));
  }
  return slice;
}

void PerfettoTrace::read_event(const Sequence& sequence, std::uint64_t time,
                               const ProtoReader& event) {
  const auto found = tracks_.find(event.number(11).value_or(0));
  ASSERT_NE(found, tracks_.end()) << "an event on no track";
  Track& track = found->second;
  EXPECT_GE(time, track.last) << track.path;
  track.last = time;
  const std::uint64_t type = event.number(9).value_or(0);
  EXPECT_EQ(track.is_counter, type == 4) << track.path;
  switch (type) {
    case 1:
      EXPECT_TRUE(track.open.empty()) << "slices of a row do not overlap: " << track.path;
      track.open.push_back(begun(sequence, track, time, event));
      return;
    case 2:
      ASSERT_FALSE(track.open.empty()) << "an end without a begin: " << track.path;
      track.open.back().end = time;
      track.open.back().flows_in = event.numbers(48);
      EXPECT_TRUE(event.numbers(47).empty());
      EXPECT_LT(track.open.back().start, time);
      slices_.push_back(track.open.back());
      track.open.pop_back();
      return;
    case 4:
      values_[track.path].emplace_back(time, static_cast<std::int64_t>(event.number(30).value()));
      return;
    default:
      ADD_FAILURE() << "an event of type " << type;
  }
}

void PerfettoTrace::check_ends() const {
  for (const auto& [uuid, track] : tracks_) EXPECT_TRUE(track.open.empty()) << track.path;
  std::map<std::uint64_t, std::uint64_t> begins;
  for (const Slice& slice : slices_) {
    for (const std::uint64_t id : slice.flows_out) {
      EXPECT_TRUE(begins.emplace(id, slice.start).second) << "flow " << id << " begins twice";
    }
  }
  std::set<std::uint64_t> ends;
  for (const Slice& slice : slices_) {
    for (const std::uint64_t id : slice.flows_in) {
      EXPECT_TRUE(ends.insert(id).second) << "flow " << id << " ends twice";
      ASSERT_TRUE(begins.contains(id)) << "flow " << id << " has no begin";
      EXPECT_LT(begins.at(id), slice.end) << "flow " << id << " leads backwards";
    }
  }
  EXPECT_EQ(begins.size(), ends.size());
}

}  // namespace heddle::replay::test
