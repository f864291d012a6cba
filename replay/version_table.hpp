#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node-runtime/trace/record.hpp"

namespace heddle::replay {

/// Table by version of the tiles of a job, such as the maker or arrival time. Open addressing with
/// fixed capacity.
template <class Value>
class VersionTable {
 public:
  explicit VersionTable(std::size_t count) {
    while (entries_bits_ < 60 && (std::size_t{1} << entries_bits_) < 2 * (count + 1)) {
      ++entries_bits_;
    }
    entries_.resize(std::size_t{1} << entries_bits_);
  }

  /// Null if absent.
  [[nodiscard]] const Value* find(trace::Tile tile, Version version) const {
    const Entry& entry = entries_[place_of(tile, version)];
    return entry.is_taken ? &entry.value : nullptr;
  }
  [[nodiscard]] Value* find(trace::Tile tile, Version version) {
    Entry& entry = entries_[place_of(tile, version)];
    return entry.is_taken ? &entry.value : nullptr;
  }
  /// Inserts a default value if absent. At most the announced number of entries.
  [[nodiscard]] Value& operator()(trace::Tile tile, Version version) {
    Entry& entry = entries_[place_of(tile, version)];
    entry.tile = tile;
    entry.version = version;
    entry.is_taken = true;
    return entry.value;
  }

 private:
  struct Entry {
    trace::Tile tile;
    Version version;
    bool is_taken = false;
    Value value{};
  };

  [[nodiscard]] std::size_t place_of(trace::Tile tile, Version version) const {
    auto mixed = static_cast<std::uint64_t>(static_cast<std::uint32_t>(tile.index)) << 32U |
                 static_cast<std::uint32_t>(version.value());
    mixed ^= static_cast<std::uint64_t>(tile.matrix) * 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ mixed >> 32U) * 0xD6E8FEB86659FD93U;
    std::size_t at = static_cast<std::size_t>(mixed >> (64U - entries_bits_));
    while (entries_[at].is_taken &&
           (entries_[at].tile != tile || entries_[at].version != version)) {
      at = (at + 1) & (entries_.size() - 1);
    }
    return at;
  }

  unsigned entries_bits_ = 4;
  std::vector<Entry> entries_;  ///< at most half used
};

}  // namespace heddle::replay
