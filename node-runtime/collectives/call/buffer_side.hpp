#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "node-runtime/collectives/call/direct_call.hpp"
#include "node-runtime/collectives/execution/execution.hpp"
#include "node-runtime/collectives/schedule/copy_policy.hpp"

/// What the ways by buffers on devices have in common (shared_buffer.hpp, tree_buffers.hpp).
namespace heddle::collectives {

struct BufferOptions {
  Rank root{0};  ///< that has the result, or the message, first
  Copies copies = Copies::automatic;
  std::int64_t fragment_bytes = 0;  ///< at most; a multiple of an element's bytes
};

/// A message in fragments, and a buffer's ring of places for them.
struct BufferCut {
  static constexpr std::int64_t places_max = 3;

  std::int64_t block_bytes = 0;
  std::int64_t fragment_bytes = 0;

  [[nodiscard]] std::int64_t fragments() const {
    return (block_bytes + fragment_bytes - 1) / fragment_bytes;
  }
  [[nodiscard]] std::int64_t places() const { return std::min(places_max, fragments()); }
  [[nodiscard]] std::int64_t offset(std::int64_t fragment) const {
    return fragment * fragment_bytes;
  }
  [[nodiscard]] std::int64_t bytes(std::int64_t fragment) const {
    return std::min(fragment_bytes, block_bytes - offset(fragment));
  }
  /// Size of the part of a buffer that holds one fragment.
  [[nodiscard]] std::int64_t slot_bytes() const;
};

/// What a rank that has a buffer and one that copies to or from it tell each other.
struct BufferNote {
  enum class Kind : std::uint8_t {
    arrived,  ///< the other one: it is ready for copies
    copy,     ///< who has the buffer: do this copy
    ended,    ///< the other one: its copy has ended, where the buffer's rank does not see it
    refused,  ///< the other one: it cannot map the buffer
    over,     ///< who has the buffer: there are no more copies
  };
  Kind kind = Kind::arrived;
  CopyType type = CopyType::mapped;
  bool is_out = false;
  bool is_again = false;
  bool may_map = false;       ///< arrived
  std::uint8_t unused[3]{};   // NOLINT(*-avoid-c-arrays)
  std::int64_t fragment = 0;  ///< arrived, in a tree: how many it is ready for
  std::int32_t staged = 0;    ///< over: copies, of all
  std::int32_t copies = 0;
  p2p::MemoryReference buffer{};  ///< copy
};

/// One rank's side of a way by buffers: its notes, its messages and works, and what is to follow
/// when one of them ends.
class BufferSide : public Errand {
 public:
  BufferSide(const Call& call, DirectRank rank, const DirectMemory& memory,
             const BufferOptions& options, const Task& task);

  void begin(Courier& courier) override;
  void ended(std::int64_t ticket) override;

 protected:
  using Then = std::function<void()>;

  virtual void start() = 0;
  [[nodiscard]] bool is_quiet() const { return under_way_.empty(); }

  void send_note(Rank to, BufferNote note, Then then);
  void receive_note(Rank from, std::function<void(const BufferNote&)> then);
  void send_elements(Rank to, bool is_out, std::int64_t fragment, const std::byte* from, Then then);
  void receive_elements(Rank from, bool is_out, std::int64_t fragment, std::byte* to, Then then);
  void work(p2p::DeviceWork work, Then then);
  void refer(std::shared_ptr<p2p::Referral> referral, Then then);

  /// As the call wants it, and what is known of copies says.
  [[nodiscard]] CopyPolicy policy(CollectiveKind kind) const;

  /// Host memory for a fragment, kept for the next one.
  [[nodiscard]] std::shared_ptr<std::byte> take_room();
  void give_back(std::shared_ptr<std::byte> room) { rooms_.push_back(std::move(room)); }

  [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(rank_.nodes.size()); }
  [[nodiscard]] NodeId node_of(Rank rank) const {
    return rank_.nodes[static_cast<std::size_t>(rank.value())];
  }
  /// Ranks without the root, in their order.
  [[nodiscard]] std::int32_t member_of(Rank rank) const {
    return rank.value() - (rank.value() > options_.root.value() ? 1 : 0);
  }
  [[nodiscard]] Rank rank_of(std::int32_t member) const {
    return Rank{member + (member >= options_.root.value() ? 1 : 0)};
  }

  // NOLINTBEGIN(*-non-private-member-variables-in-classes)
  const DirectRank rank_;
  const DirectMemory memory_;
  const BufferOptions options_;
  const bool has_copies_in_;
  const bool has_copies_out_;
  const BufferCut cut_;
  std::int32_t copies_ = 0;  ///< for describe()
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

}  // namespace heddle::collectives
