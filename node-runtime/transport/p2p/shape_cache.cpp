#include "node-runtime/transport/p2p/shape_cache.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "node-runtime/transport/datatype/overlap.hpp"

namespace heddle::p2p {

std::shared_ptr<const Shape> ShapeCache::shape_of(const Datatype& type, std::int64_t count) {
  const std::size_t hash = std::hash<const void*>()(type.identity()) / alignof(std::max_align_t) +
                           static_cast<std::size_t>(count);
  std::shared_ptr<const Shape>& place = shapes_[hash % places];
  {
    const std::scoped_lock lock(mutex_);
    const bool is_known =
        place != nullptr && place->count == count && place->type.identity() == type.identity();
    if (is_known) return place;
  }
  // Without the lock: a long description must not hold up other threads.
  auto shape = make(type, count);
  const std::scoped_lock lock(mutex_);
  place = shape;
  return shape;
}

std::shared_ptr<const Shape> ShapeCache::make(const Datatype& type, std::int64_t count) {
  auto shape =
      std::make_shared<Shape>(Shape{.type = type, .count = count, .plan = plans_.commit(type)});
  const PackPlan& plan = *shape->plan;
  shape->bytes = plan.stream_bytes(count);
  if (receives_) check_receivable(plan, count);
  if (shape->bytes > 0) {
    const LoopNest nest = plan.nest_of(count);
    shape->is_run = plan.body == PackPlan::Body::block && nest.depth == 0;
    shape->offset = nest.offset;
    const std::int64_t last = (count - 1) * plan.extent;
    shape->first = std::min<std::int64_t>(0, last) + plan.true_lower_bound;
    shape->span = std::max<std::int64_t>(0, last) + plan.true_upper_bound - shape->first;
    shape->loops = loop_shape(plan, count);
  }
  shape->signature = type.signature().repeated(count);
  shape->digest = shape->signature.digest(shape->bytes);
  return shape;
}

}  // namespace heddle::p2p
