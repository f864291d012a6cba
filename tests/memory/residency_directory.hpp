#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

#include "node-runtime/residency/residency.hpp"

/// What the tests of Residency's rules share.
namespace heddle::residency_tests {

using protocol::AccessMode;
using Content = Residency::Content;
using TicketId = Residency::TicketId;
using Uses = std::vector<Residency::Use>;
using Blocks = std::vector<ResidentBlock>;

inline constexpr std::uint64_t tile = 1024;

inline Uses read(const Blocks& blocks) {
  Uses uses;
  for (const ResidentBlock b : blocks) uses.push_back({b, AccessMode::read});
  return uses;
}
inline Uses write(ResidentBlock b) {
  return {{b, AccessMode::write}};
}
/// As a task of that priority does it.
inline Uses urgent(Uses uses, std::int32_t priority) {
  for (Residency::Use& use : uses) use.priority = priority;
  return uses;
}
inline Uses update(ResidentBlock b) {
  return {{b, AccessMode::read_write}};
}

/// A directory, and short ways to bring its blocks into a state.
struct Directory {
  explicit Directory(std::uint64_t tiles, std::int32_t early_writes = 0, double dirty_share_max = 0)
      : r({.bytes = tiles * tile,
           .dirty_share_max = dirty_share_max,
           .early_writes = early_writes,
           .overtakes_max = 3}) {}

  ResidentBlock add(std::uint64_t tiles = 1) { return r.add_block(tiles * tile); }

  TicketId request(const Uses& uses) {
    const TicketId id = r.request(uses, actions);
    EXPECT_TRUE(r.is_valid());
    return id;
  }
  void release(const Uses& uses) {
    r.release(uses, actions);
    EXPECT_TRUE(r.is_valid());
  }
  TicketId request_host(const Uses& uses) {
    const TicketId id = r.request_host(uses, actions);
    EXPECT_TRUE(r.is_valid());
    return id;
  }
  void release_host(const Uses& uses) {
    r.release_host(uses, actions);
    EXPECT_TRUE(r.is_valid());
  }
  /// Requests, finishes all transfers, releases.
  void use(const Uses& uses) {
    const TicketId id = request(uses);
    while (!is_ready(id) && transfers() > 0) finish_all();
    ASSERT_TRUE(is_ready(id));
    release(uses);
  }
  void use_host(const Uses& uses) {
    const TicketId id = request_host(uses);
    while (!is_ready(id) && transfers() > 0) finish_all();
    ASSERT_TRUE(is_ready(id));
    release_host(uses);
  }
  ResidentBlock modified(std::uint64_t tiles = 1) {
    const ResidentBlock b = add(tiles);
    use(write(b));
    return b;
  }
  /// Backed, in a pool of which nothing is pinned: everything goes to make one frame of it all.
  ResidentBlock backed() {
    const ResidentBlock b = modified();
    evict_all();
    EXPECT_EQ(r.content(b), Content::backed);
    return b;
  }
  void evict_all() {
    const ResidentBlock all = r.add_block(r.bytes());
    use(write(all));
    r.discard(all, actions);
    finish_all();  // it may be on its way to its backing already
    r.remove_block(all);
    actions.clear();
  }
  ResidentBlock shared() {
    const ResidentBlock b = backed();
    use(read({b}));
    actions.clear();
    return b;
  }
  [[nodiscard]] std::size_t transfers() const {
    return actions.fetches.size() + actions.write_backs.size();
  }
  void finish_all() {
    const auto fetches = std::exchange(actions.fetches, {});
    const auto write_backs = std::exchange(actions.write_backs, {});
    for (const auto& t : fetches) r.fetch_finished(t.block, actions);
    for (const auto& t : write_backs) r.write_back_finished(t.block, actions);
    EXPECT_TRUE(r.is_valid());
  }
  void fetched(ResidentBlock b) {
    r.fetch_finished(b, actions);
    EXPECT_TRUE(r.is_valid());
  }
  void written(ResidentBlock b) {
    r.write_back_finished(b, actions);
    EXPECT_TRUE(r.is_valid());
  }
  [[nodiscard]] bool is_ready(TicketId id) const {
    return std::count(actions.ready.begin(), actions.ready.end(), id) == 1;
  }
  [[nodiscard]] Blocks fetching() const { return blocks_of(actions.fetches); }
  [[nodiscard]] Blocks writing() const { return blocks_of(actions.write_backs); }
  static Blocks blocks_of(const std::vector<Residency::Transfer>& transfers) {
    Blocks blocks;
    for (const auto& t : transfers) blocks.push_back(t.block);
    return blocks;
  }

  Residency r;
  Residency::Actions actions;
};

}  // namespace heddle::residency_tests
