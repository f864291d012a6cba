#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "node-runtime/protocol/types.hpp"
#include "tests/support/program.hpp"

namespace heddle::simulation {

/// The memory of one simulated node: what each block holds, and who may touch it at this moment.
/// From the moment the protocol asks for something until its completion is reported, the work may
/// be under way: its sources must not be written or freed, its destinations not be touched by
/// anyone else. Every violation is a text; the first one is kept.
///
/// Invariant: readers >= 0; readers and a writer never together, once no violation is reported.
class BlockLedger {
 public:
  /// For the text of a violation: "statement 12", "a copy of tile 3".
  struct User {
    const char* what = "nobody";
    std::int64_t number = 0;
  };

  void begin_read(protocol::BlockRef block, User who);
  void end_read(protocol::BlockRef block);
  void begin_write(protocol::BlockRef block, User who);
  void end_write(protocol::BlockRef block);
  /// The protocol says that nobody needs the content any more.
  void freed(protocol::BlockRef block);

  [[nodiscard]] Content& content(protocol::BlockRef block) { return at(block).content; }
  /// True when nothing reads or writes any block.
  [[nodiscard]] bool idle() const;
  /// A block that still holds something though it is none of `kept`; invalid if there is none.
  [[nodiscard]] protocol::BlockRef not_given_up(const std::set<protocol::BlockRef>& kept) const;
  /// Some block that a writer holds now, other than `except`; invalid if there is none.
  [[nodiscard]] protocol::BlockRef written_block_in(std::int32_t pool,
                                                    protocol::BlockRef except) const;

  /// The first violation, empty if there was none.
  [[nodiscard]] const std::string& violation() const { return violation_; }

 private:
  struct Use {
    Content content = poisoned;
    std::int32_t readers = 0;
    bool writer = false;
    User who;  ///< began the latest use
  };
  Use& at(protocol::BlockRef block) { return blocks_[block]; }
  void violate(std::string text);

  std::map<protocol::BlockRef, Use> blocks_;
  std::string violation_;
};

}  // namespace heddle::simulation
