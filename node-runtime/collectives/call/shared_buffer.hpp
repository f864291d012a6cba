#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "node-runtime/collectives/call/direct_call.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/schedule/copy_policy.hpp"

namespace heddle::collectives {

/// The gsb way of ranks on one host (002 sections 4.1 and 5.2): the leader has a buffer on its
/// device, which the others copy their elements into; it reduces them there, and they copy the
/// result out. For reduce, all_reduce and broadcast. A copy is mapped, done by the device of the
/// rank that has the elements, or staged, through host memory and by a message, as the leader's
/// CopyPolicy says. The buffer is a ring of fragments. Notes are messages: no device waits.
///
/// Where a rank has its elements on the host, or cannot map the buffer, its copies are staged.
///
/// No deadlock: each side always listens for the other's next note; what a note asks for waits for
/// nothing but its device and its message. The leader begins a fragment's copies when the copies of
/// the one before have ended, and the fragment whose place in the ring it takes has been given out.
struct SharedBufferOptions {
  Rank leader{0};
  Copies copies = Copies::automatic;
  std::int64_t fragment_bytes = 0;  ///< at most; a multiple of an element's bytes
};

/// A buffer's parts, in bytes from its begin: for each place of the ring a slot for every member's
/// fragment and one for the result; then the slot of a copy that is done again, and those of the
/// leader's own fragments, which are needed if its elements are on the host.
struct SharedBufferLayout {
  static constexpr std::int64_t places_max = 3;

  std::int64_t block_bytes = 0;
  std::int64_t fragment_bytes = 0;
  std::int32_t members = 0;  ///< ranks beside the leader; 0: nothing is copied in

  [[nodiscard]] std::int64_t fragments() const {
    return (block_bytes + fragment_bytes - 1) / fragment_bytes;
  }
  [[nodiscard]] std::int64_t places() const { return std::min(places_max, fragments()); }
  [[nodiscard]] std::int64_t offset(std::int64_t fragment) const {
    return fragment * fragment_bytes;
  }
  [[nodiscard]] std::int64_t bytes(std::int64_t fragment) const;
  [[nodiscard]] std::int64_t slot(std::int32_t member, std::int64_t fragment) const;
  [[nodiscard]] std::int64_t result(std::int64_t fragment) const { return slot(members, fragment); }
  [[nodiscard]] std::int64_t again() const { return slot_bytes() * (members + 1) * places(); }
  [[nodiscard]] std::int64_t own(std::int64_t fragment) const {
    return again() + slot_bytes() * (1 + fragment % places());
  }
  [[nodiscard]] std::int64_t all_bytes() const { return again() + slot_bytes() * (1 + places()); }

 private:
  [[nodiscard]] std::int64_t slot_bytes() const;
};

/// What a leader and a member tell each other.
struct SharedBufferNote {
  enum class Kind : std::uint8_t {
    arrived,  ///< member: its elements are there
    copy,     ///< leader: do this copy
    ended,    ///< member: a mapped copy, or a staged one out of the buffer
    refused,  ///< member: it cannot map the buffer
    over,     ///< leader: there are no more copies
  };
  Kind kind = Kind::arrived;
  CopyType type = CopyType::mapped;
  bool is_out = false;
  bool is_again = false;
  bool may_map = false;      ///< arrived
  std::uint8_t unused[3]{};  // NOLINT(*-avoid-c-arrays)
  std::int64_t fragment = 0;
  std::int32_t staged = 0;  ///< over: copies, of all
  std::int32_t copies = 0;
  p2p::MemoryReference buffer{};  ///< copy
};

/// What both sides of the way have in common: their places, their notes, and what is to follow when
/// a message or work of theirs ends.
class SharedBufferSide : public Errand {
 public:
  SharedBufferSide(const Call& call, DirectRank rank, const DirectMemory& memory,
                   const SharedBufferOptions& options, const Task& task);

  void begin(Courier& courier) override;
  void ended(std::int64_t ticket) override;
  [[nodiscard]] std::string describe() const override;

 protected:
  using Then = std::function<void()>;

  virtual void start() = 0;
  [[nodiscard]] bool is_quiet() const { return under_way_.empty(); }

  void send_note(Rank to, SharedBufferNote note, Then then);
  void receive_note(Rank from, std::function<void(const SharedBufferNote&)> then);
  void send_elements(Rank to, bool is_out, std::int64_t fragment, const std::byte* from, Then then);
  void receive_elements(Rank from, bool is_out, std::int64_t fragment, std::byte* to, Then then);
  void work(p2p::DeviceWork work, Then then);
  void refer(std::shared_ptr<p2p::Referral> referral, Then then);

  /// Host memory for a fragment, kept for the next one.
  [[nodiscard]] std::shared_ptr<std::byte> take_room();
  void give_back(std::shared_ptr<std::byte> room) { rooms_.push_back(std::move(room)); }

  [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(rank_.nodes.size()); }
  [[nodiscard]] NodeId node_of(Rank rank) const {
    return rank_.nodes[static_cast<std::size_t>(rank.value())];
  }
  /// Members count in the order of ranks, without the leader.
  [[nodiscard]] std::int32_t member_of(Rank rank) const {
    return rank.value() - (rank.value() > options_.leader.value() ? 1 : 0);
  }
  [[nodiscard]] Rank rank_of(std::int32_t member) const {
    return Rank{member + (member >= options_.leader.value() ? 1 : 0)};
  }

  // NOLINTBEGIN(*-non-private-member-variables-in-classes)
  const DirectRank rank_;
  const DirectMemory memory_;
  const SharedBufferOptions options_;
  const bool has_copies_in_;
  const bool has_copies_out_;
  const SharedBufferLayout layout_;
  std::int32_t copies_ =
      0;  ///< that have been asked for; at members when they hear that it is over
  std::int32_t staged_ = 0;  ///< of them
                             // NOLINTEND(*-non-private-member-variables-in-classes)

 private:
  [[nodiscard]] std::int64_t ticket_of(Then then);
  [[nodiscard]] Courier::Name name(std::int32_t place, std::int64_t fragment) const;

  const std::uint64_t seal_;
  Courier* courier_ = nullptr;
  std::int64_t next_ticket_ = 0;
  std::map<std::int64_t, Then> under_way_;  ///< by ticket
  std::vector<std::shared_ptr<std::byte>> rooms_;
};

/// This rank's side. The leader's takes device memory: throws what RankDevices::scratch does, and
/// Error(usage) for an operation without a form for its device.
[[nodiscard]] std::shared_ptr<Errand> make_shared_buffer_way(const Call& call,
                                                             const DirectRank& rank,
                                                             const DirectMemory& memory,
                                                             const SharedBufferOptions& options,
                                                             const Task& task);
/// Both are in files of their own.
[[nodiscard]] std::shared_ptr<Errand> make_shared_buffer_leader(const Call& call,
                                                                const DirectRank& rank,
                                                                const DirectMemory& memory,
                                                                const SharedBufferOptions& options,
                                                                const Task& task);
[[nodiscard]] std::shared_ptr<Errand> make_shared_buffer_member(const Call& call,
                                                                const DirectRank& rank,
                                                                const DirectMemory& memory,
                                                                const SharedBufferOptions& options,
                                                                const Task& task);

}  // namespace heddle::collectives
