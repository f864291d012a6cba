#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "base/indexed_vector.hpp"

namespace heddle::collectives {

/// A member of a group, counted from 0.
using Rank = Index<struct RankTag, std::int32_t>;

/// Where a rank works and where its memory is (000 section 5.2.1: its topology tuple). Numbers are
/// those of all ranks alike: what is equal is the same thing.
struct RankPlace {
  static constexpr std::int64_t no_gpu = -1;

  std::int32_t host = 0;
  std::int32_t socket = 0;      ///< of the host: that of the GPU, or of the rank's cores
  std::int32_t pci_switch = 0;  ///< of the host, that the GPU hangs on
  std::int64_t gpu = no_gpu;    ///< of the host: ranks may share one
  std::int32_t card = 0;        ///< of the host: the nearest network interface

  friend auto operator<=>(const RankPlace&, const RankPlace&) = default;
};

/// The places of all ranks of a group.
class Places {
 public:
  /// `of_ranks`: the place of rank 0, 1, ... Throws Error(usage) without a rank.
  explicit Places(std::vector<RankPlace> of_ranks);

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(places_.size()); }
  [[nodiscard]] const RankPlace& operator[](Rank rank) const { return places_[rank]; }

  /// All ranks in the order of their places: neighbours share a GPU, else a PCI switch, else a
  /// socket, else a host, wherever there are such. A chain in this order enters each of them once,
  /// whatever numbers the ranks have (000 section 5.2.5).
  [[nodiscard]] std::span<const Rank> order() const { return order_; }
  /// The position of a rank in order().
  [[nodiscard]] std::int32_t position(Rank rank) const { return positions_[rank]; }

  /// The places of a group's members, which are renumbered in the order of `members`: each of them
  /// once. Throws Error(usage) for a rank that there is not, or that is named twice.
  [[nodiscard]] Places subset(std::span<const Rank> members) const;

  /// order() is a permutation, ascending by place and then by rank; positions are its inverse.
  [[nodiscard]] bool is_valid() const;

 private:
  [[nodiscard]] bool comes_before(Rank a, Rank b) const;

  IndexedVector<Rank, RankPlace> places_;
  std::vector<Rank> order_;
  IndexedVector<Rank, std::int32_t> positions_;
};

/// Ranks of which only the hosts are known, by their names; those behind the last name are on the
/// first host.
[[nodiscard]] Places places_on_hosts(std::span<const std::string> hosts, std::int32_t ranks);

}  // namespace heddle::collectives
