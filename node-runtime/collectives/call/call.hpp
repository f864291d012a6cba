#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node-runtime/collectives/options.hpp"
#include "node-runtime/collectives/reduce/reduce_operation.hpp"
#include "node-runtime/collectives/schedule/choice.hpp"

namespace heddle::collectives {

/// Elements on one rank. Those of an input are only read.
struct Elements {
  std::byte* memory = nullptr;
  std::int64_t count = 0;
  Datatype type = Scalar::byte;

  Elements() = default;
  Elements(const Outgoing& from);  // NOLINT(google-explicit-constructor)
  Elements(const Incoming& into);  // NOLINT(google-explicit-constructor)
};

/// A short description of a call, cheap to keep, for messages about errors.
struct CallSummary {
  CollectiveKind kind = CollectiveKind::barrier;
  bool is_rooted = false;
  std::int32_t root = 0;
  std::int64_t count = -1;  ///< -1: one for each rank, or none
  Datatype type = Scalar::byte;
  bool is_listed = false;
  bool is_in_place = false;
  bool has_counts = false;
  std::optional<ReduceOperation> operation;
  Order order = Order::ranks;
  std::string name;

  /// "all_reduce of 100 elements of float64 with sum".
  [[nodiscard]] std::string describe() const;
};

enum class Side : std::uint8_t { input, output };

/// What a rank of a group calls.
struct Call {
  CollectiveKind kind = CollectiveKind::barrier;
  std::int32_t root = 0;
  std::vector<Elements> inputs;   ///< one; or, with a buffer for each rank, as many as ranks
  std::vector<Elements> outputs;  ///< likewise
  /// Buffers for each rank, where the operation has blocks; otherwise one buffer has them all, each
  /// of its `count`.
  bool is_listed = false;
  bool is_in_place = false;            ///< the output is the input as well
  std::vector<std::int64_t> counts{};  ///< reduce_scatter: of each rank; empty: all have one
  ReduceOperation operation = ReduceOperation::sum();
  CollectiveOptions options{};

  [[nodiscard]] bool is_rooted() const;
  [[nodiscard]] bool reduces() const;
  /// Whether the order of the reduction may be that of places: all but prefixes and operations that
  /// are not commutative.
  [[nodiscard]] bool may_reorder() const;
  /// For a reduction: whether every order gives the same bits.
  [[nodiscard]] bool is_exact() const;
  /// The order that is asked for.
  [[nodiscard]] Order order() const;
  /// One buffer of that side has a block for each rank.
  [[nodiscard]] bool has_blocks(Side side) const;
  [[nodiscard]] CallSummary summary() const;
  [[nodiscard]] std::string describe() const { return summary().describe(); }
};

/// The scalar that all elements consist of; `byte` where there is none. Throws Error(usage) where
/// there are several.
[[nodiscard]] Scalar scalar_of(const Elements& elements, const Call& call);

/// Throws Error(usage) for what makes no sense on rank `own` of `size`, before anything travels: a
/// root that is not there, negative counts, null memory with elements, scalars that are mixed or
/// that the operation does not take, or are no whole number of its elements, lists of another
/// length, and input and output that overlap.
void check(const Call& call, std::int32_t own, std::int32_t size);

/// Throws Error(usage) for a reduction on a device's stream by an operation without a form for that
/// backend.
void check_on_stream(const Call& call, DeviceBackend backend);

}  // namespace heddle::collectives
