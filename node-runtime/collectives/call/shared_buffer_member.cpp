#include <algorithm>
#include <fmt/core.h>
#include <string>
#include <utility>

#include "node-runtime/collectives/call/buffer_works.hpp"
#include "node-runtime/collectives/call/shared_buffer.hpp"

namespace heddle::collectives {
namespace {

/// A rank that copies what the leader asks for. By one thread at a time, which has the operation's
/// claim; what it queues is called by the progress thread, and has copies of all it needs.
class SharedBufferMember final : public SharedBufferSide {
 public:
  using SharedBufferSide::SharedBufferSide;

  [[nodiscard]] bool is_over() const override { return has_all_ && is_quiet(); }
  [[nodiscard]] std::string waits_for() const override {
    return fmt::format("rank {}, which has the buffer, after {} copies", options_.root.value(),
                       done_);
  }

 private:
  using Note = BufferNote;

  void start() override {
    Note note;
    note.kind = Note::Kind::arrived;
    note.may_map = memory_.home.lane.has_value();
    tell(note);
    listen();
  }

  void tell(const Note& note) {
    send_note(options_.root, note, [] {});
  }
  void listen() {
    receive_note(options_.root, [this](const Note& note) { heard(note); });
  }

  void heard(const Note& note) {
    if (note.kind == Note::Kind::over) {
      copies_ = note.copies;
      staged_ = note.staged;
      has_all_ = true;
      return;
    }
    if (note.type == CopyType::mapped) {
      copy_mapped(note);
    } else if (note.is_out) {
      take(note);
    } else {
      give(note);
    }
    listen();
  }

  /// The copy has ended.
  void answer(Note note, Note::Kind kind) {
    ++done_;
    note.kind = kind;
    note.buffer = {};
    tell(note);
  }

  [[nodiscard]] std::byte* elements(const Note& note) const {
    return (note.is_out ? memory_.output : memory_.input) + cut_.offset(note.fragment);
  }

  void copy_mapped(const Note& note) {
    const std::int64_t slot = note.is_out     ? layout_.result(note.fragment)
                              : note.is_again ? layout_.again()
                                              : layout_.slot(member_of(rank_.own), note.fragment);
    const auto refusal = std::make_shared<std::string>();
    p2p::DeviceWork copy;
    copy.lane = *memory_.home.lane;
    copy.remote.push_back({node_of(options_.root), note.buffer});
    copy.refusal = refusal;
    copy.queue =
        [own = elements(note), slot, is_out = note.is_out,
         bytes = static_cast<std::size_t>(cut_.bytes(note.fragment))](const p2p::WorkPlace& place) {
          const Device* const device = &place.stream.device();
          const p2p::Spot& buffer = place.remote.front();
          std::byte* const there = buffer.address + slot;
          if (is_out) return place.stream.copy({own, device}, {there, buffer.device}, bytes);
          place.stream.copy({there, buffer.device}, {own, device}, bytes);
        };
    work(std::move(copy), [this, note, refusal] {
      answer(note, refusal->empty() ? Note::Kind::ended : Note::Kind::refused);
    });
  }

  /// Between this rank's device and host memory.
  void copy_here(const Note& note, std::byte* room, Then then) {
    p2p::DeviceWork copy;
    copy.lane = *memory_.home.lane;
    const NearMemory own{elements(note), false};
    const NearMemory host{room, true};
    copy.queue = note.is_out ? copying(own, host, cut_.bytes(note.fragment))
                             : copying(host, own, cut_.bytes(note.fragment));
    work(std::move(copy), std::move(then));
  }

  /// Staged, into the buffer: the leader sees its end by the message.
  void give(const Note& note) {
    if (!memory_.home.lane) {
      return send_elements(options_.root, false, note.fragment, elements(note),
                           [this] { ++done_; });
    }
    const std::shared_ptr<std::byte> room = take_room();
    copy_here(note, room.get(), [this, note, room] {
      send_elements(options_.root, false, note.fragment, room.get(), [this, room] {
        ++done_;
        give_back(room);
      });
    });
  }

  /// Staged, out of the buffer.
  void take(const Note& note) {
    if (!memory_.home.lane) {
      return receive_elements(options_.root, true, note.fragment, elements(note),
                              [this, note] { answer(note, Note::Kind::ended); });
    }
    const std::shared_ptr<std::byte> room = take_room();
    receive_elements(options_.root, true, note.fragment, room.get(), [this, note, room] {
      copy_here(note, room.get(), [this, note, room] {
        give_back(room);
        answer(note, Note::Kind::ended);
      });
    });
  }

  std::int32_t done_ = 0;
  bool has_all_ = false;
};

}  // namespace

std::shared_ptr<Errand> make_shared_buffer_member(const Call& call, const DirectRank& rank,
                                                  const DirectMemory& memory,
                                                  const BufferOptions& options, const Task& task) {
  return std::make_shared<SharedBufferMember>(call, rank, memory, options, task);
}

}  // namespace heddle::collectives
