#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "node-runtime/collectives/schedule/copies.hpp"
#include "node-runtime/collectives/schedule/order.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"

namespace heddle {

/// Elements that a collective operation takes: `count` of `type`, the first at `memory`.
struct Outgoing {
  const void* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;
};

/// Room for elements that it gives, likewise. Elements of the type must not overlap.
struct Incoming {
  void* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;
};

/// How one operation is to be done; the same on all ranks.
struct CollectiveOptions {
  /// Of reduce, all_reduce and reduce_scatter, whose result then has the same bits on all ranks,
  /// and in every repeat on the same places; prefixes have the order of ranks. Operations that are
  /// exact for their elements have one result, and take the faster order. Nothing:
  /// runtime.collectives.
  std::optional<Order> order{};
  /// "auto", a tree at all levels ("flat", "chain", "binary", "binomial", "split_binary"), a way of
  /// all_reduce ("reduce_broadcast", "scatter_gather") or of all_to_all ("pairwise", "leaders",
  /// "bruck"); or "direct": each device of the host that has memory of a rank does a share for all,
  /// by reading and writing the memory of all ranks; or, of broadcast, reduce and all_reduce,
  /// "gsb": ranks copy into a buffer of one rank's device and out of it; or "btb": into buffers of
  /// half of the ranks, along a binomial tree. Empty: runtime.collectives.
  std::string algorithm{};
  /// Under "gsb" and "btb": how they copy. Nothing: runtime.collectives.
  std::optional<Copies> copies{};
  /// Pieces in which a message is forwarded; 0: runtime.collectives.
  std::int64_t fragment_bytes = 0;
  /// In messages; empty: what the operation is.
  std::string name{};

  [[nodiscard]] bool chooses_algorithm() const { return !algorithm.empty() && algorithm != "auto"; }
};

}  // namespace heddle
