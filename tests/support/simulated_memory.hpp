#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "node-runtime/residency/residency.hpp"
#include "tests/support/program.hpp"

namespace heddle::simulation {

/// Which copy of a block somebody works on. Blocks of the host have but one.
enum class Copy : std::uint8_t { only, frame, backing };

/// The memory of a simulated device's place: DeviceCache without threads, with contents. Frames are
/// of one size; what is in one, or in a backing, is what was put there last, and poisoned while a
/// transfer fills it. Whether that is what a user should find, its caller knows.
class SimulatedMemory {
 public:
  using Use = Residency::Use;
  using Uses = std::vector<Use>;
  using TicketId = Residency::TicketId;
  struct Options {
    std::size_t frames = 0;
    double dirty_share_max = 0.5;
    std::int32_t early_writes = 2;
    std::int32_t overtakes_max = 64;
  };
  /// Frames that are enough for tasks with so many blocks next to those that others hold.
  [[nodiscard]] static std::size_t frames_min(std::size_t uses, std::size_t others);

  explicit SimulatedMemory(const Options& options);

  /// The block as the directory knows it; added when it is first seen.
  [[nodiscard]] ResidentBlock resident(protocol::BlockRef block);
  /// Gives a block that nobody wrote a content.
  void adopt(protocol::BlockRef block, Content content);

  [[nodiscard]] bool try_acquire(const Uses& uses);
  TicketId request(const Uses& uses);
  void release(const Uses& uses) { residency_.release(uses, take()); }
  TicketId request_host(const Uses& uses);
  void release_host(const Uses& uses) { residency_.release_host(uses, take()); }
  /// As DeviceCache::acquire_for_message and release_for_message.
  [[nodiscard]] std::optional<Copy> reach(const Use& use);
  void end_reach(const Use& use, Copy copy);
  void discard(protocol::BlockRef block);
  /// Those that have become ready, once each.
  [[nodiscard]] std::vector<TicketId> take_ready();

  [[nodiscard]] std::size_t transfers() const { return transfers_.size(); }
  void finish_transfer(std::size_t index);

  [[nodiscard]] std::uint64_t missing_backings(const Uses& uses) const;
  [[nodiscard]] bool is_resident(ResidentBlock block) const {
    return residency_.is_resident(block);
  }
  /// What is in the copy; poisoned if there is none.
  [[nodiscard]] Content content(protocol::BlockRef block, Copy copy);
  void put(protocol::BlockRef block, Copy copy, Content content);
  /// Whether all copies that the directory takes for the newest are this.
  [[nodiscard]] bool agrees(protocol::BlockRef block, Content newest);
  /// Whether nobody waits or holds a frame: all can be had at once. Everything is evicted then.
  [[nodiscard]] bool empties();
  [[nodiscard]] const Residency::Statistics& statistics() const { return residency_.statistics(); }

 private:
  struct Transfer {
    Residency::Transfer what;
    bool is_fetch = false;
  };
  [[nodiscard]] Content& frame(std::uint64_t offset);
  [[nodiscard]] Content& backing(ResidentBlock block);
  void define(const Uses& uses);
  /// For the next event, when those of the last have begun.
  Residency::Actions& take();
  void begin_transfers();

  Residency residency_;
  Residency::Actions actions_;
  std::vector<Content> frames_;
  std::vector<Content> backings_;  ///< by ResidentBlock
  std::map<protocol::BlockRef, ResidentBlock> residents_;
  std::vector<Transfer> transfers_;
  std::vector<TicketId> ready_;
  bool is_touched_ = false;  ///< since the invariant was looked at
};

}  // namespace heddle::simulation
