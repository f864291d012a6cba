#include "tests/support/block_ledger.hpp"

#include <algorithm>
#include <fmt/core.h>

namespace heddle::simulation {

using protocol::BlockRef;

namespace {

std::string text(BlockRef block) {
  return fmt::format("block {} of pool {}", block.index, block.pool);
}

std::string text(BlockLedger::User user) {
  return fmt::format("{} {}", user.what, user.number);
}

}  // namespace

void BlockLedger::violate(std::string text) {
  if (violation_.empty()) violation_ = std::move(text);
}

void BlockLedger::begin_read(BlockRef block, User who) {
  Use& use = at(block);
  if (use.writer) {
    violate(fmt::format("{} reads {} while {} writes it", text(who), text(block), text(use.who)));
  }
  ++use.readers;
  use.who = who;
}

void BlockLedger::end_read(BlockRef block) {
  Use& use = at(block);
  if (use.readers == 0) violate(fmt::format("nobody reads {}", text(block)));
  --use.readers;
}

void BlockLedger::begin_write(BlockRef block, User who) {
  Use& use = at(block);
  if (use.writer || use.readers > 0) {
    violate(fmt::format("{} writes {} while {} {} it", text(who), text(block), text(use.who),
                        use.writer ? "writes" : "reads"));
  }
  use.writer = true;
  use.who = who;
}

void BlockLedger::end_write(BlockRef block) {
  Use& use = at(block);
  if (!use.writer) violate(fmt::format("nobody writes {}", text(block)));
  use.writer = false;
}

void BlockLedger::freed(BlockRef block) {
  Use& use = at(block);
  if (use.writer || use.readers > 0) {
    violate(fmt::format("{} is freed while {} {} it", text(block), text(use.who),
                        use.writer ? "writes" : "reads"));
  }
  use.content = poisoned;
}

bool BlockLedger::idle() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [](const auto& entry) {
    return entry.second.readers == 0 && !entry.second.writer;
  });
}

BlockRef BlockLedger::not_given_up(const std::set<BlockRef>& kept) const {
  for (const auto& [block, use] : blocks_) {
    if (use.content != poisoned && !kept.contains(block)) return block;
  }
  return {};
}

BlockRef BlockLedger::written_block_in(std::int32_t pool, BlockRef except) const {
  for (const auto& [block, use] : blocks_) {
    if (use.writer && block.pool == pool && block != except) return block;
  }
  return {};
}

}  // namespace heddle::simulation
