#include <algorithm>
#include <fmt/core.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/collectives/call/buffer_works.hpp"
#include "node-runtime/collectives/call/shared_buffer.hpp"
#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {
namespace {

/// The rank that has the buffer: assigns the members' copies, fragment by fragment, and reduces. By
/// one thread at a time, which has the operation's claim; what it queues is called by the progress
/// thread, and has copies of all it needs.
///
/// Copies into the buffer are those of one fragment at a time, copies out of it likewise; both may
/// be under way at once. A copy in that is done again has a slot of its own, and the members' copy
/// out waits for both ends: the member may write where it reads.
class SharedBufferLeader final : public SharedBufferSide {
 public:
  SharedBufferLeader(const Call& call, const DirectRank& rank, const DirectMemory& memory,
                     const BufferOptions& options, const Task& task)
      : SharedBufferSide(call, rank, memory, options, task),
        operation_(task.operation),
        scalar_(task.scalar),
        lane_(memory.home.lane.value_or(p2p::LaneId{0})),
        members_(static_cast<std::size_t>(ranks() - 1)),
        places_(static_cast<std::size_t>(cut_.places())),
        policy_(policy(call.kind)) {
    if (call.reduces()) {
      require_device_form(operation_, memory.home.devices->device(lane_).info().backend);
    }
    buffer_ = memory.home.devices->scratch(lane_, layout_.all_bytes());
  }
  SharedBufferLeader(const SharedBufferLeader&) = delete;
  SharedBufferLeader& operator=(const SharedBufferLeader&) = delete;
  /// A device of another rank may still write to the buffer of an operation that has failed.
  ~SharedBufferLeader() override {
    if (has_begun_ && !is_over()) rank_.known->keep(buffer_);
  }

  [[nodiscard]] bool is_over() const override {
    return given_out_ == cut_.fragments() && is_quiet();
  }

  [[nodiscard]] std::string waits_for() const override {
    std::string text;
    const auto add = [&](const std::optional<CopyStage>& stage, std::int64_t fragment,
                         std::string_view way) {
      if (!stage) return;
      for (std::int32_t m = 0; m < count(); ++m) {
        const CopyState state = stage->state(m);
        if (state == CopyState::mapped_ended || state == CopyState::staged_ended) continue;
        text += fmt::format("{}rank {}'s copy of fragment {} {} the buffer ({})",
                            text.empty() ? "" : ", ", rank_of(m).value(), fragment, way,
                            name_of(state));
      }
    };
    add(in_, next_in_ - 1, "into");
    add(out_, next_out_, "out of");
    return text.empty() ? "its device" : text;
  }

 private:
  using Note = BufferNote;

  struct Member {
    bool has_arrived = false;
    bool may_map = false;
    std::int32_t owed = 1;  ///< notes that are to come from it: that it has arrived, first
    bool is_heard = false;  ///< a receive for the next one is posted
  };
  /// A fragment in the ring.
  struct Place {
    bool is_computed = false;
    std::vector<bool> is_again;       ///< by member: its elements are in the other slot
    std::shared_ptr<std::byte> room;  ///< the result on the host, for staged copies
    bool is_in_room = false;
    std::vector<std::int32_t> waiting;  ///< members, for it
    std::int32_t busy = 0;              ///< messages that read it
  };
  /// A copy that was done again, until both have ended.
  struct Again {
    std::int32_t member;
    std::int64_t fragment;
    CopyType type;  ///< the second one's
    std::int32_t left = 2;
  };

  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(members_.size()); }
  [[nodiscard]] Member& member(std::int32_t m) { return members_[static_cast<std::size_t>(m)]; }
  [[nodiscard]] Place& place(std::int64_t fragment) {
    return places_[static_cast<std::size_t>(fragment % cut_.places())];
  }

  void start() override {
    has_begun_ = true;
    std::vector<NodeId> others;
    for (std::int32_t m = 0; m < count(); ++m) others.push_back(node_of(rank_of(m)));
    const auto referral = std::make_shared<p2p::Referral>(p2p::Referral{buffer_.get(), others});
    refer(referral, [this, referral] {
      reference_ = referral->reference;
      for (std::int32_t m = 0; m < count(); ++m) listen(m);
      go_on();
    });
  }

  // ---- notes ----------------------------------------------------------------------------------
  void listen(std::int32_t m) {
    if (member(m).is_heard || member(m).owed == 0) return;
    member(m).is_heard = true;
    receive_note(rank_of(m), [this, m](const Note& note) {
      member(m).is_heard = false;
      --member(m).owed;
      heard(m, note);
      listen(m);
      go_on();
    });
  }

  void heard(std::int32_t m, const Note& note) {
    switch (note.kind) {
      case Note::Kind::arrived:
        return arrived(m, note.may_map);
      case Note::Kind::ended:
        return note.is_out ? out_ended(m, note.type) : in_ended(m, note.fragment, note.type);
      case Note::Kind::refused:
        return refused(m, note);
      case Note::Kind::copy:
      case Note::Kind::over:
        break;
    }
    HEDDLE_CHECK(false, "member {} tells what the leader does", m);
  }

  [[nodiscard]] std::uint64_t mapping_of(std::int32_t m) const {
    return mixed(mixed(reference_->handle.allocation, 1), static_cast<std::uint64_t>(m));
  }

  void arrived(std::int32_t m, bool may_map) {
    member(m).has_arrived = true;
    member(m).may_map = may_map && reference_ && !rank_.known->is_refused(mapping_of(m));
    arrivals_.push_back(m);
    if (in_) assign(in_->arrived(m, member(m).may_map), false, next_in_ - 1);
    if (out_) assign(out_->arrived(m, member(m).may_map), true, next_out_);
  }

  void refused(std::int32_t m, const Note& note) {
    member(m).may_map = false;
    rank_.known->learn_refused(mapping_of(m));
    if (note.is_out) return assign(out_->refused(m), true, next_out_);
    if (again_ && again_->member == m) end_again();
    // Otherwise all copies of the stage may have ended, by one that was done again.
    if (in_ && next_in_ - 1 == note.fragment) assign(in_->refused(m), false, note.fragment);
  }

  // ---- copies ---------------------------------------------------------------------------------
  void assign(const CopyStage::Assignments& assignments, bool is_out, std::int64_t fragment) {
    for (const CopyStage::Assignment& one : assignments) {
      ++copies_;
      if (one.type == CopyType::staged) ++staged_;
      if (one.is_again) again_ = Again{one.copy, fragment, one.type};
      Note note;
      note.kind = Note::Kind::copy;
      note.type = one.type;
      note.is_out = is_out;
      note.is_again = one.is_again;
      note.fragment = fragment;
      if (one.type == CopyType::mapped) note.buffer = *reference_;
      const bool is_answered = is_out || one.type == CopyType::mapped;
      if (is_answered) ++member(one.copy).owed;
      send_note(rank_of(one.copy), note, [this, m = one.copy, is_out, fragment] {
        if (is_out && out_ && next_out_ == fragment) out_->begun(m);
        if (!is_out && in_ && next_in_ - 1 == fragment) in_->begun(m);
      });
      listen(one.copy);
      if (one.type == CopyType::mapped) continue;
      is_out ? give(one.copy, fragment) : take(one.copy, fragment, one.is_again);
    }
  }

  /// A staged copy in.
  void take(std::int32_t m, std::int64_t fragment, bool is_again) {
    const std::shared_ptr<std::byte> room = take_room();
    const std::int64_t slot = is_again ? layout_.again() : layout_.slot(m, fragment);
    receive_elements(rank_of(m), false, fragment, room.get(), [this, m, fragment, room, slot] {
      p2p::DeviceWork copy;
      copy.lane = lane_;
      copy.queue = copying({buffer_.get() + slot, false}, {room.get(), true}, cut_.bytes(fragment));
      work(std::move(copy), [this, m, fragment, room] {
        give_back(room);
        in_ended(m, fragment, CopyType::staged);
        go_on();
      });
    });
  }

  /// A staged copy out: of the result on the host, which the first one brings there.
  void give(std::int32_t m, std::int64_t fragment) {
    Place& at = place(fragment);
    if (at.is_in_room) return send_result(m, fragment);
    at.waiting.push_back(m);
    if (at.room != nullptr) return;
    at.room = take_room();
    p2p::DeviceWork copy;
    copy.lane = lane_;
    copy.queue = copying({at.room.get(), true}, {buffer_.get() + layout_.result(fragment), false},
                         cut_.bytes(fragment));
    work(std::move(copy), [this, fragment] {
      place(fragment).is_in_room = true;
      for (const std::int32_t waiting : std::exchange(place(fragment).waiting, {})) {
        send_result(waiting, fragment);
      }
    });
  }

  void send_result(std::int32_t m, std::int64_t fragment) {
    ++place(fragment).busy;
    send_elements(rank_of(m), true, fragment, place(fragment).room.get(), [this, fragment] {
      --place(fragment).busy;
      go_on();
    });
  }

  void in_ended(std::int32_t m, std::int64_t fragment, CopyType type) {
    const bool was_again = again_ && again_->member == m && again_->fragment == fragment;
    const bool is_second = was_again && again_->type == type;
    if (in_ && next_in_ - 1 == fragment) {
      const CopyState state = in_->state(m);
      const bool is_first_end =
          state != CopyState::mapped_ended && state != CopyState::staged_ended;
      if (is_first_end && is_second) place(fragment).is_again[static_cast<std::size_t>(m)] = true;
      assign(in_->ended(m, type), false, fragment);
    } else {
      policy_.ended(type);
    }
    if (was_again) end_again();
  }

  void end_again() {
    if (--again_->left > 0) return;
    const Again ended = *std::exchange(again_, std::nullopt);
    // Its copy out has waited.
    if (out_ && out_->state(ended.member) == CopyState::initial) {
      assign(out_->arrived(ended.member, member(ended.member).may_map), true, next_out_);
    }
  }

  void out_ended(std::int32_t m, CopyType type) { assign(out_->ended(m, type), true, next_out_); }

  // ---- fragments ------------------------------------------------------------------------------
  /// Begins all that may begin.
  void go_on() {
    bool goes_on = true;
    while (goes_on) goes_on = end_in() || begin_in() || end_out() || begin_out() || retire();
    finish();
  }

  bool begin_in() {
    const bool is_free = next_in_ < cut_.fragments() && next_in_ < given_out_ + cut_.places();
    if (in_ || !is_free) return false;
    const std::int64_t fragment = next_in_++;
    Place& at = place(fragment);
    at.is_computed = at.is_in_room = false;
    at.is_again.assign(members_.size(), false);
    if (!has_copies_in_) {
      compute(fragment);
      return true;
    }
    in_.emplace(policy_, count(), CopyStage::Repeats::last_slow_one);
    for (const std::int32_t m : arrivals_)
      assign(in_->arrived(m, member(m).may_map), false, fragment);
    return true;
  }

  bool end_in() {
    if (!in_ || !in_->is_over()) return false;
    in_.reset();
    compute(next_in_ - 1);
    return true;
  }

  bool begin_out() {
    const bool is_there = next_out_ < next_in_ && place(next_out_).is_computed;
    if (out_ || !is_there || !has_copies_out_) return false;
    out_.emplace(policy_, count(), CopyStage::Repeats::never);
    for (const std::int32_t m : arrivals_) {
      if (again_ && again_->member == m) continue;
      assign(out_->arrived(m, member(m).may_map), true, next_out_);
    }
    return true;
  }

  bool end_out() {
    if (!out_ || !out_->is_over()) return false;
    out_.reset();
    ++next_out_;
    return true;
  }

  /// Its place in the ring is free.
  bool retire() {
    if (given_out_ == next_in_) return false;
    Place& at = place(given_out_);
    const bool is_given = has_copies_out_ ? given_out_ < next_out_ : at.is_computed;
    const bool is_read = again_ && again_->fragment == given_out_;
    if (!is_given || is_read || at.busy > 0) return false;
    if (at.room != nullptr) give_back(std::exchange(at.room, nullptr));
    ++given_out_;
    return true;
  }

  void finish() {
    if (given_out_ < cut_.fragments() || std::exchange(has_told_all_, true)) return;
    Note note;
    note.kind = Note::Kind::over;
    note.copies = copies_;
    note.staged = staged_;
    for (std::int32_t m = 0; m < count(); ++m) send_note(rank_of(m), note, [] {});
  }

  /// The result of all ranks' elements, in the order of ranks; or the root's, of a broadcast.
  void compute(std::int64_t fragment) {
    p2p::DeviceWork reduction;
    reduction.lane = lane_;
    reduction.queue = has_copies_in_ ? reducing_all(fragment) : copying_own(fragment);
    work(std::move(reduction), [this, fragment] {
      place(fragment).is_computed = true;
      go_on();
    });
  }

  [[nodiscard]] DeviceQueue copying_own(std::int64_t fragment) const {
    const NearMemory own{memory_.input + cut_.offset(fragment), !memory_.home.lane};
    return copying({buffer_.get() + layout_.result(fragment), false}, own, cut_.bytes(fragment));
  }

  /// Its own elements are read and written in place, or on the host by way of the buffer.
  [[nodiscard]] DeviceQueue reducing_all(std::int64_t fragment) {
    const bool is_host = !memory_.home.lane;
    std::byte* const input = memory_.input + cut_.offset(fragment);
    std::byte* const output = memory_.output + cut_.offset(fragment);
    BufferReduction all{operation_, scalar_, cut_.bytes(fragment), {}, {}};
    if (is_host) {
      all.host_input = input;
      all.own_slot = buffer_.get() + layout_.own(fragment);
      all.host_output = output;
    }
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (Rank{r} == options_.root) {
        all.from.push_back(is_host ? all.own_slot : input);
        continue;
      }
      const std::int32_t m = member_of(Rank{r});
      const bool is_again = place(fragment).is_again[static_cast<std::size_t>(m)];
      all.from.push_back(buffer_.get() + (is_again ? layout_.again() : layout_.slot(m, fragment)));
    }
    if (has_copies_out_ || is_host) all.to.push_back(buffer_.get() + layout_.result(fragment));
    if (!is_host) all.to.push_back(output);
    return reducing(std::move(all));
  }

  const ReduceOperation operation_;
  const Scalar scalar_;
  const p2p::LaneId lane_;
  std::shared_ptr<std::byte> buffer_;
  std::optional<p2p::MemoryReference> reference_;  ///< none: processes cannot share it
  std::vector<Member> members_;
  std::vector<Place> places_;           ///< the ring
  std::vector<std::int32_t> arrivals_;  ///< members, in their order
  CopyPolicy policy_;
  std::optional<CopyStage> in_;   ///< of fragment next_in_ - 1
  std::optional<CopyStage> out_;  ///< of fragment next_out_
  std::optional<Again> again_;
  std::int64_t next_in_ = 0;
  std::int64_t next_out_ = 0;
  std::int64_t given_out_ = 0;  ///< fragments whose places are free
  bool has_begun_ = false;
  bool has_told_all_ = false;
};

}  // namespace

std::shared_ptr<Errand> make_shared_buffer_leader(const Call& call, const DirectRank& rank,
                                                  const DirectMemory& memory,
                                                  const BufferOptions& options, const Task& task) {
  return std::make_shared<SharedBufferLeader>(call, rank, memory, options, task);
}

}  // namespace heddle::collectives
