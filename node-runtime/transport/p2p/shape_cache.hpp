#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/plan_cache.hpp"
#include "node-runtime/transport/datatype/signature.hpp"

namespace heddle::p2p {

/// Properties of `count` elements of a type that do not depend on their address.
struct Shape {
  Datatype type;
  std::int64_t count = 0;
  std::shared_ptr<const PackPlan> plan;
  std::int64_t bytes = 0;
  std::optional<LoopShape> loops{};  ///< where loops say all, seen from `first`
  std::int64_t first = 0;            ///< of the first byte that is touched
  std::int64_t span = 0;             ///< from there to behind the last one
  bool is_run = false;               ///< the bytes lie in one piece
  std::int64_t offset = 0;           ///< then: of the first one
  Signature signature{};
  std::uint64_t digest = 0;  ///< of all of it
};

/// A direct-mapped cache of the shapes of recent messages, by the identity of their types: programs
/// send the same types repeatedly.
///
/// Threads: any.
class ShapeCache {
 public:
  /// `receives`: shapes whose elements overlap are refused.
  explicit ShapeCache(bool receives) : receives_(receives) {}

  /// Throws Error(usage) for counts and types that cannot be.
  [[nodiscard]] std::shared_ptr<const Shape> shape_of(const Datatype& type, std::int64_t count);

 private:
  static constexpr std::size_t places = 64;

  [[nodiscard]] std::shared_ptr<const Shape> make(const Datatype& type, std::int64_t count);

  bool receives_;
  PlanCache plans_;
  std::mutex mutex_;  ///< what follows
  std::array<std::shared_ptr<const Shape>, places> shapes_;
};

}  // namespace heddle::p2p
