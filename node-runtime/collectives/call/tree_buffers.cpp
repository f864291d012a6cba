#include <fmt/core.h>
#include <string>
#include <utility>

#include "node-runtime/collectives/call/tree_buffer_way.hpp"
#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {

TreeBufferWay::TreeBufferWay(const Call& call, const DirectRank& rank, const DirectMemory& memory,
                             const BufferOptions& options, const Task& task)
    : BufferSide(call, rank, memory, options, task),
      operation_(task.operation),
      scalar_(task.scalar),
      lane_(memory.home.lane.value_or(p2p::LaneId{0})),
      tree_(buffer_tree(ranks(), options.root, rank.own)),
      layout_{cut_, has_copies_in_},
      commands_left_(tree_.parent ? cut_.fragments() * copies_each_way() : 0) {
  if (!has_buffer()) return;
  if (has_copies_in_) {
    require_device_form(operation_, memory.home.devices->device(lane_).info().backend);
  }
  buffer_ = memory.home.devices->scratch(lane_, layout_.all_bytes());
  places_.resize(static_cast<std::size_t>(cut_.places()));
  const CopyPolicy wanted = policy(call.kind);
  for (const BufferTree::Child& one : tree_.children) {
    Child child{one.rank, one.comes_first};
    child.is_staged = !wanted.is_dynamic() && member_of(one.rank) < wanted.staged();
    child.owed = arrivals_of(one.rank);
    children_.push_back(child);
  }
}

std::int64_t TreeBufferWay::arrivals_of(Rank child) const {
  if (buffer_tree(ranks(), options_.root, child).children.empty()) return 1;
  return has_copies_in_ ? cut_.fragments() : 1 + cut_.fragments() - cut_.places();
}

void TreeBufferWay::start() {
  has_begun_ = true;
  if (!has_buffer()) {
    tell_ready(cut_.fragments());
    return listen_to_parent();
  }
  std::vector<NodeId> others;
  for (const Child& child : children_) others.push_back(node_of(child.rank));
  const auto referral = std::make_shared<p2p::Referral>(p2p::Referral{buffer_.get(), others});
  refer(referral, [this, referral] {
    reference_ = referral->reference;
    for (std::size_t c = 0; c < children_.size(); ++c) listen_to(c);
    go_on();
  });
  listen_to_parent();
}

// ---- fragments -------------------------------------------------------------------------------

/// Begins all that may begin.
void TreeBufferWay::go_on() {
  bool goes_on = true;
  while (goes_on) {
    goes_on = open();
    for (std::int64_t f = given_; f < next_; ++f) {
      while (advance(f)) goes_on = true;
    }
    while (has_copies_in_ && tree_.parent && whole_ < next_ &&
           place(whole_).stage >= Stage::whole) {
      tell_ready(++whole_);
    }
    while (given_ < next_ && place(given_).stage == Stage::given && is_told(given_)) {
      if (place(given_).room != nullptr) give_back(std::exchange(place(given_).room, nullptr));
      ++given_;
      goes_on = true;
    }
  }
}

bool TreeBufferWay::open() {
  if (!has_buffer() || next_ == cut_.fragments() || next_ == given_ + cut_.places()) return false;
  const std::int64_t fragment = next_++;
  place(fragment) = {has_copies_in_ ? Stage::coming : Stage::taken, 0, false, {}};
  if (has_copies_in_) return true;
  // In a broadcast the root has the value, and others say that they have room.
  if (tree_.parent) {
    if (next_ >= cut_.places()) tell_ready(next_);
    return true;
  }
  place(fragment).is_busy = true;
  work_here(copying({value(fragment), false}, {memory_.input + cut_.offset(fragment), is_on_host()},
                    cut_.bytes(fragment)),
            [this, fragment] {
              has_result(fragment);
              go_on();
            });
  return true;
}

void TreeBufferWay::has_result(std::int64_t fragment) {
  Place& at = place(fragment);
  at.stage = Stage::result;
  at.next = 0;
  at.is_busy = false;
}

/// False: the fragment waits for something.
bool TreeBufferWay::advance(std::int64_t fragment) {
  Place& at = place(fragment);
  if (at.is_busy) return false;
  const bool has_all = at.next == children_.size();
  if (at.stage == Stage::coming && has_all) {
    if (tree_.parent) {
      at.stage = Stage::whole;
    } else if (has_copies_out_) {
      has_result(fragment);
    } else {
      at.stage = Stage::given;
    }
    return true;
  }
  if (at.stage == Stage::result && has_all) {
    at.stage = Stage::given;
    return true;
  }
  const bool is_up = at.stage == Stage::coming;
  if (!is_up && at.stage != Stage::result) return false;
  const std::size_t c = is_up ? at.next : children_.size() - 1 - at.next;
  if (children_[c].ready <= fragment) return false;
  at.is_busy = true;
  ask(c, !is_up, fragment);
  return true;
}

// ---- with the parent -------------------------------------------------------------------------

void TreeBufferWay::tell_ready(std::int64_t fragments) {
  Note note;
  note.kind = Note::Kind::arrived;
  note.fragment = fragments;
  // Copies of a rank that has a buffer are between buffers.
  note.may_map = !is_on_host() || has_buffer();
  send_note(*tree_.parent, note, [] {});
}

void TreeBufferWay::listen_to_parent() {
  if (commands_left_ == 0) return;
  receive_note(*tree_.parent, [this](const Note& note) {
    --commands_left_;
    ++commands_;
    count(note.type);
    if (note.type == CopyType::mapped) {
      copy_mapped(note);
    } else {
      note.is_out ? take_result(note) : give_value(note);
    }
    listen_to_parent();
  });
}

void TreeBufferWay::has_copied(const Note& note) {
  if (!has_buffer()) return;
  if (note.is_out) {
    has_result(note.fragment);
  } else {
    place(note.fragment).stage = has_copies_out_ ? Stage::taken : Stage::given;
  }
  go_on();
}

NearMemory TreeBufferWay::own_part(const Note& note) const {
  if (has_buffer()) return {value(note.fragment), false};
  return {(note.is_out ? memory_.output : memory_.input) + cut_.offset(note.fragment),
          is_on_host()};
}

DeviceQueue TreeBufferWay::copying_to_output(const Note& note) const {
  if (!note.is_out || !has_buffer()) return [](const p2p::WorkPlace&) {};
  return copying({memory_.output + cut_.offset(note.fragment), is_on_host()}, own_part(note),
                 cut_.bytes(note.fragment));
}

void TreeBufferWay::copy_mapped(const Note& note) {
  const auto refusal = std::make_shared<std::string>();
  p2p::DeviceWork copy;
  copy.lane = lane_;
  copy.remote.push_back({node_of(*tree_.parent), note.buffer});
  copy.refusal = refusal;
  copy.queue = [own = own_part(note).at, is_out = note.is_out,
                slot = note.is_out ? layout_.value(note.fragment) : layout_.incoming(note.fragment),
                bytes = static_cast<std::size_t>(cut_.bytes(note.fragment)),
                behind = copying_to_output(note)](const p2p::WorkPlace& place) {
    const Device* const device = &place.stream.device();
    const p2p::Spot& buffer = place.remote.front();
    std::byte* const there = buffer.address + slot;
    if (!is_out) return place.stream.copy({there, buffer.device}, {own, device}, bytes);
    place.stream.copy({own, device}, {there, buffer.device}, bytes);
    behind(place);
  };
  work(std::move(copy), [this, note, refusal] {
    Note answer = note;
    answer.buffer = {};
    answer.kind = refusal->empty() ? Note::Kind::ended : Note::Kind::refused;
    send_note(*tree_.parent, answer, [] {});
    --commands_;
    if (refusal->empty()) return has_copied(note);
    // It is asked for again.
    if (commands_left_++ == 0) listen_to_parent();
  });
}

void TreeBufferWay::give_value(const Note& note) {
  const NearMemory own = own_part(note);
  if (own.is_on_host) {
    return send_elements(*tree_.parent, false, note.fragment, own.at, [this] { --commands_; });
  }
  const std::shared_ptr<std::byte> room = take_room();
  work_here(copying({room.get(), true}, own, cut_.bytes(note.fragment)), [this, note, room] {
    send_elements(*tree_.parent, false, note.fragment, room.get(), [this, room] {
      --commands_;
      give_back(room);
    });
    has_copied(note);
  });
}

void TreeBufferWay::take_result(const Note& note) {
  const NearMemory own = own_part(note);
  if (own.is_on_host) {
    return receive_elements(*tree_.parent, true, note.fragment, own.at, [this] { --commands_; });
  }
  const std::shared_ptr<std::byte> room = take_room();
  receive_elements(*tree_.parent, true, note.fragment, room.get(), [this, note, own, room] {
    work_here(
        [first = copying(own, {room.get(), true}, cut_.bytes(note.fragment)),
         behind = copying_to_output(note)](const p2p::WorkPlace& place) {
          first(place);
          behind(place);
        },
        [this, note, room] {
          give_back(room);
          --commands_;
          has_copied(note);
        });
  });
}

std::string TreeBufferWay::waits_for() const {
  if (has_buffer() && given_ < next_) {
    const Place& at = place(given_);
    const bool is_up = at.stage == Stage::coming;
    if ((is_up || at.stage == Stage::result) && at.next < children_.size()) {
      const std::size_t c = is_up ? at.next : children_.size() - 1 - at.next;
      return fmt::format("rank {}'s copy of fragment {} {} its buffer", children_[c].rank.value(),
                         given_, is_up ? "into" : "out of");
    }
  }
  if (tree_.parent && commands_left_ > 0) {
    return fmt::format("rank {}, which has the buffer for this one, before {} copies more",
                       tree_.parent->value(), commands_left_);
  }
  return "its device";
}

std::shared_ptr<Errand> make_tree_buffer_way(const Call& call, const DirectRank& rank,
                                             const DirectMemory& memory,
                                             const BufferOptions& options, const Task& task) {
  return std::make_shared<TreeBufferWay>(call, rank, memory, options, task);
}

}  // namespace heddle::collectives
