#pragma once

#include <cstddef>
#include <cstdint>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/collectives/call/buffer_works.hpp"
#include "node-runtime/collectives/call/tree_buffers.hpp"
#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/schedule/buffer_tree.hpp"

namespace heddle::collectives {

/// By one thread at a time, which has the operation's claim; what it queues is called by the
/// progress thread, and has copies of all it needs.
class TreeBufferWay final : public BufferSide {
 public:
  TreeBufferWay(const Call& call, const DirectRank& rank, const DirectMemory& memory,
                const BufferOptions& options, const Task& task);
  TreeBufferWay(const TreeBufferWay&) = delete;
  TreeBufferWay& operator=(const TreeBufferWay&) = delete;
  /// A device of another rank may still write to the buffer of an operation that has failed.
  ~TreeBufferWay() override {
    if (has_begun_ && has_buffer() && !is_over()) rank_.known->keep(buffer_);
  }

  [[nodiscard]] bool is_over() const override {
    return has_begun_ && commands_left_ == 0 && commands_ == 0 &&
           (!has_buffer() || given_ == cut_.fragments()) && is_quiet();
  }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("btb, {} of {} copies of this rank staged", staged_, copies_);
  }
  [[nodiscard]] std::string waits_for() const override;

 private:
  using Note = BufferNote;

  struct Child {
    Rank rank{0};
    bool comes_first = false;
    bool is_staged = false;  ///< as the call wants it
    bool may_map = false;    ///< as it says itself
    std::int64_t ready = 0;  ///< fragments that it can copy in, or take
    std::int64_t owed = 0;   ///< notes that are to come from it
    bool is_heard = false;   ///< a receive for the next one is posted
  };
  enum class Stage : std::uint8_t {
    coming,  ///< values of children come in
    whole,   ///< the value of this rank's part is there, for the parent to take
    taken,   ///< it has been taken, and the result is to come
    result,  ///< the result is there, for the children
    given,   ///< they have it
  };
  /// A fragment in the ring.
  struct Place {
    Stage stage = Stage::coming;
    std::size_t next = 0;               ///< child whose turn it is: upwards, then downwards
    bool is_busy = false;               ///< with its copy, or a work of this rank's
    std::shared_ptr<std::byte> room{};  ///< the result on the host, for staged copies
  };

  [[nodiscard]] bool has_buffer() const { return !tree_.children.empty(); }
  [[nodiscard]] std::int64_t copies_each_way() const {
    return (has_copies_in_ ? 1 : 0) + (has_copies_out_ ? 1 : 0);
  }
  /// Notes by which a child says for how many fragments it is ready: once, or one by one.
  [[nodiscard]] std::int64_t arrivals_of(Rank child) const;
  [[nodiscard]] Place& place(std::int64_t fragment) {
    return places_[static_cast<std::size_t>(fragment % cut_.places())];
  }
  [[nodiscard]] const Place& place(std::int64_t fragment) const {
    return places_[static_cast<std::size_t>(fragment % cut_.places())];
  }
  [[nodiscard]] std::byte* value(std::int64_t fragment) const {
    return buffer_.get() + layout_.value(fragment);
  }
  [[nodiscard]] bool is_on_host() const { return !memory_.home.lane; }

  void start() override;

  // ---- with children ----------------------------------------------------------------------------
  void listen_to(std::size_t c);

  void heard(std::size_t c, const Note& note);

  [[nodiscard]] std::uint64_t mapping_of(const Child& child) const {
    return mixed(mixed(reference_->handle.allocation, 1),
                 static_cast<std::uint64_t>(child.rank.value()));
  }

  void ask(std::size_t c, bool is_out, std::int64_t fragment);

  void count(CopyType type) {
    ++copies_;
    if (type == CopyType::staged) ++staged_;
  }

  /// A staged copy in.
  void take(std::size_t c, std::int64_t fragment);

  /// A staged copy out: of the result on the host, which the first one brings there.
  void give(std::size_t c, std::int64_t fragment);

  void came_in(std::int64_t fragment);

  void went_out(std::int64_t fragment) {
    Place& at = place(fragment);
    ++at.next;
    at.is_busy = false;
  }

  /// The value of this rank's part and of the child whose turn it is.
  [[nodiscard]] DeviceQueue reducing_next(std::int64_t fragment) const;

  void work_here(DeviceQueue queue, Then then);

  // ---- fragments --------------------------------------------------------------------------------
  /// Begins all that may begin.
  void go_on();
  /// The parent knows that this rank has the value.
  [[nodiscard]] bool is_told(std::int64_t fragment) const {
    return !has_copies_in_ || !tree_.parent || fragment < whole_;
  }

  bool open();

  void has_result(std::int64_t fragment);

  /// False: the fragment waits for something.
  bool advance(std::int64_t fragment);

  // ---- with the parent --------------------------------------------------------------------------
  void tell_ready(std::int64_t fragments);

  void listen_to_parent();

  /// The copy has read this rank's value, or written its result.
  void has_copied(const Note& note);

  /// Where this rank has what it gives, or gets.
  [[nodiscard]] NearMemory own_part(const Note& note) const;
  /// Behind a copy of the result to its buffer.
  [[nodiscard]] DeviceQueue copying_to_output(const Note& note) const;

  void copy_mapped(const Note& note);

  /// Staged, into the parent's buffer: the parent sees its end by the message, perhaps before this
  /// rank, and may go on with the fragment.
  void give_value(const Note& note);

  /// Staged, out of the parent's buffer.
  void take_result(const Note& note);

  const ReduceOperation operation_;
  const Scalar scalar_;
  const p2p::LaneId lane_;
  const BufferTree tree_;
  const TreeBufferLayout layout_;
  std::shared_ptr<std::byte> buffer_;
  std::optional<p2p::MemoryReference> reference_;  ///< none: processes cannot share it
  std::vector<Child> children_;                    ///< in the order of levels
  std::vector<Place> places_;                      ///< the ring
  std::int64_t next_ = 0;                          ///< fragment to open
  std::int64_t whole_ = 0;                         ///< fragments that the parent may take
  std::int64_t given_ = 0;                         ///< fragments whose places are free
  std::int64_t commands_left_;                     ///< copies that the parent will ask for
  std::int64_t commands_ = 0;                      ///< copies for it under way
  bool has_begun_ = false;
};

}  // namespace heddle::collectives
