#include <utility>

#include "base/assert.hpp"
#include "node-runtime/collectives/call/tree_buffer_way.hpp"

/// What a rank does with the children of its buffer.
namespace heddle::collectives {

void TreeBufferWay::listen_to(std::size_t c) {
  if (children_[c].is_heard || children_[c].owed == 0) return;
  children_[c].is_heard = true;
  receive_note(children_[c].rank, [this, c](const Note& note) {
    children_[c].is_heard = false;
    --children_[c].owed;
    heard(c, note);
    listen_to(c);
    go_on();
  });
}

void TreeBufferWay::heard(std::size_t c, const Note& note) {
  Child& child = children_[c];
  switch (note.kind) {
    case Note::Kind::arrived:
      child.ready = note.fragment;
      child.may_map = note.may_map && reference_ && !rank_.known->is_refused(mapping_of(child));
      return;
    case Note::Kind::ended:
      return note.is_out ? went_out(note.fragment) : came_in(note.fragment);
    case Note::Kind::refused:
      rank_.known->learn_refused(mapping_of(child));
      child.may_map = false;
      return ask(c, note.is_out, note.fragment);
    case Note::Kind::copy:
    case Note::Kind::over:
      break;
  }
  HEDDLE_CHECK(false, "rank {} tells what its parent does", child.rank.value());
}

void TreeBufferWay::ask(std::size_t c, bool is_out, std::int64_t fragment) {
  Child& child = children_[c];
  Note note;
  note.kind = Note::Kind::copy;
  note.type = child.may_map && !child.is_staged ? CopyType::mapped : CopyType::staged;
  note.is_out = is_out;
  note.fragment = fragment;
  count(note.type);
  if (note.type == CopyType::mapped) {
    note.buffer = *reference_;
    ++child.owed;
  }
  send_note(child.rank, note, [] {});
  listen_to(c);
  if (note.type == CopyType::mapped) return;
  is_out ? give(c, fragment) : take(c, fragment);
}

void TreeBufferWay::take(std::size_t c, std::int64_t fragment) {
  const std::shared_ptr<std::byte> room = take_room();
  receive_elements(children_[c].rank, false, fragment, room.get(), [this, fragment, room] {
    work_here(copying({buffer_.get() + layout_.incoming(fragment), false}, {room.get(), true},
                      cut_.bytes(fragment)),
              [this, fragment, room] {
                give_back(room);
                came_in(fragment);
                go_on();
              });
  });
}

void TreeBufferWay::give(std::size_t c, std::int64_t fragment) {
  const auto send = [this, c, fragment] {
    send_elements(children_[c].rank, true, fragment, place(fragment).room.get(), [this, fragment] {
      went_out(fragment);
      go_on();
    });
  };
  if (place(fragment).room != nullptr) return send();
  place(fragment).room = take_room();
  work_here(
      copying({place(fragment).room.get(), true}, {value(fragment), false}, cut_.bytes(fragment)),
      send);
}

void TreeBufferWay::came_in(std::int64_t fragment) {
  work_here(reducing_next(fragment), [this, fragment] {
    Place& at = place(fragment);
    ++at.next;
    at.is_busy = false;
    go_on();
  });
}

DeviceQueue TreeBufferWay::reducing_next(std::int64_t fragment) const {
  const std::size_t c = place(fragment).next;
  const bool is_first = c == 0;
  const bool is_last = c + 1 == children_.size();
  std::byte* const input = memory_.input + cut_.offset(fragment);
  std::byte* const incoming = buffer_.get() + layout_.incoming(fragment);
  std::byte* own = is_first && !is_on_host() ? input : value(fragment);
  BufferReduction both{operation_, scalar_, cut_.bytes(fragment), {own, incoming}, {}};
  if (children_[c].comes_first) std::swap(both.from[0], both.from[1]);
  if (is_first && is_on_host()) {
    both.host_input = input;
    both.own_slot = value(fragment);
  }
  const bool is_result = is_last && !tree_.parent;
  if (!is_result || has_copies_out_ || is_on_host()) both.to.push_back(value(fragment));
  if (is_result) {
    std::byte* const output = memory_.output + cut_.offset(fragment);
    if (is_on_host()) {
      both.host_output = output;
    } else {
      both.to.push_back(output);
    }
  }
  return reducing(std::move(both));
}

void TreeBufferWay::work_here(DeviceQueue queue, Then then) {
  p2p::DeviceWork made;
  made.lane = lane_;
  made.queue = std::move(queue);
  work(std::move(made), std::move(then));
}

}  // namespace heddle::collectives
