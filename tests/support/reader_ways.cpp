#include "tests/support/reader_ways.hpp"

#include <algorithm>
#include <utility>

namespace heddle::simulation {

using protocol::AccessMode;
using protocol::Reader;

namespace {

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t h = (a ^ b * 0x9E3779B97F4A7C15ULL) * 0xD6E8FEB86659FD93ULL;
  h ^= h >> 32;
  return h * 0xD6E8FEB86659FD93ULL;
}

ReaderTree tree_of(std::int32_t nodes, std::uint64_t seed) {
  const std::uint64_t count = 1 + mixed(seed, 1) % static_cast<std::uint64_t>(nodes);
  std::vector<std::int32_t> hosts;
  for (std::int32_t n = 0; n < nodes; ++n) {
    const std::uint64_t drawn = mixed(seed, 2 + static_cast<std::uint64_t>(n));
    hosts.push_back(static_cast<std::int32_t>(drawn % count));
  }
  return {std::move(hosts),
          {.flat_max = static_cast<std::int32_t>(mixed(seed, 0) % 4),
           .one_chain_max = static_cast<std::int32_t>(mixed(seed, 0) / 4 % 4)}};
}

}  // namespace

KnownReaders readers_of(const Program& program, std::uint64_t seed, bool all_known) {
  KnownReaders known;
  for (const Statement& statement : program.statements) {
    if (statement.kind != Statement::Kind::task) continue;
    const NodeId runs_on = statement.accesses.front().home.node;
    for (const protocol::Access& a : statement.accesses) {
      if (a.home.node == runs_on || a.mode == AccessMode::write) continue;
      std::vector<Reader>& readers = known[{a.tile, a.version}];
      if (std::ranges::none_of(readers, [&](const Reader& r) { return r.node == runs_on; })) {
        readers.push_back({runs_on, statement.priority});
      }
    }
  }
  if (all_known) return known;
  std::uint64_t number = 0;
  for (auto& [name, readers] : known) {
    const std::uint64_t drawn = mixed(seed, ++number) % 8;
    if (drawn == 0) readers.clear();
    if (drawn == 1) {
      readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(readers.size() / 2));
    }
  }
  return known;
}

ReaderWays::ReaderWays(KnownReaders readers, Ways ways, std::int32_t nodes, std::uint64_t seed)
    : ways_(ways), seed_(seed), readers_(std::move(readers)), tree_(tree_of(nodes, seed)) {}

std::vector<Reader> ReaderWays::readers(protocol::TileId tile, Version number) const {
  const auto found = readers_.find({tile, number});
  return found == readers_.end() ? std::vector<Reader>{} : found->second;
}

/// Position in the list, which the home follows.
std::size_t ReaderWays::parent_of(std::size_t reader, std::span<const Reader> readers) const {
  const std::size_t home = readers.size();
  switch (ways_) {
    case Ways::announced:
    case Ways::hosts:
    case Ways::home:
      return home;
    case Ways::chain:
      return reader == 0 ? home : reader - 1;
    case Ways::backwards:
      return reader + 1;
    case Ways::random: {
      std::uint64_t drawn = mixed(seed_, reader);
      for (const Reader& r : readers) {
        drawn = mixed(drawn, static_cast<std::uint64_t>(r.node.value()));
      }
      const std::size_t before = drawn % (reader + 1);
      return before == reader ? home : before;
    }
  }
  return home;
}

protocol::Route ReaderWays::route(std::span<const Reader> readers, NodeId home, NodeId node) {
  if (ways_ == Ways::hosts) return tree_.route(readers, home, node);
  protocol::Route route{home, {}};
  for (std::size_t r = 0; r < readers.size(); ++r) {
    const std::size_t parent = parent_of(r, readers);
    const NodeId from = parent == readers.size() ? home : readers[parent].node;
    if (from == node) route.to.push_back(readers[r]);
    if (readers[r].node == node) route.from = from;
  }
  return route;
}

}  // namespace heddle::simulation
