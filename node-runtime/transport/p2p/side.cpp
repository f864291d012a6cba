#include "node-runtime/transport/p2p/side.hpp"

#include <fmt/core.h>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace heddle::p2p {
namespace {

constexpr std::string_view sending = "sending";
constexpr std::string_view receiving = "receiving";

void check_count(std::string_view what, std::int64_t count) {
  if (count >= 0) return;
  throw Error(ErrorCode::usage,
              fmt::format("{} {} elements: a count must not be negative", what, count));
}

bool is_reached(const Lanes& lanes, const Side& side, LaneId by) {
  return lanes.device(by).reaches_host(side.first(), static_cast<std::size_t>(side.shape->span));
}

void* memory_of(const Outgoing& message) {
  return const_cast<void*>(message.memory);  // NOLINT(*-const-cast): only read
}

const std::shared_ptr<const Shape>& recent_shape(std::shared_ptr<const Shape>& last,
                                                 ShapeCache& shapes, std::string_view what,
                                                 std::int64_t count, const Datatype& type) {
  const bool is_same =
      last != nullptr && last->count == count && last->type.identity() == type.identity();
  if (!is_same) {
    check_count(what, count);
    last = shapes.shape_of(type, count);
  }
  return last;
}

}  // namespace

bool is_locked(const Lanes& lanes, const Side& side) {
  if (side.lane || side.bytes == 0) return false;
  for (std::int32_t i = 0; i < lanes.count(); ++i) {
    if (is_reached(lanes, side, LaneId{i})) return true;
  }
  return false;
}

LaneId lane_for(const Lanes& lanes, const Side& side, const DeviceUuid& device) {
  if (side.lane) return *side.lane;
  const LaneId same = lanes.lane_on(device).value_or(LaneId{0});
  if (is_reached(lanes, side, same)) return same;
  for (std::int32_t i = 0; i < lanes.count(); ++i) {
    if (is_reached(lanes, side, LaneId{i})) return LaneId{i};
  }
  return same;
}

Lanes::Loops loops_of(const Lanes& lanes, const Side& side) {
  HEDDLE_CHECK(side.shape->loops.has_value());
  return {*side.shape->loops, {side.first(), side.lane ? &lanes.device(*side.lane) : nullptr}};
}

Side Sides::of(const Outgoing& message) {
  check_count(sending, message.count);
  std::shared_ptr<const Shape> shape = sent_.shape_of(message.type, message.count);
  Side side = make(*shape, sending, memory_of(message), message.seal);
  side.kept = std::move(shape);
  return side;
}

Side Sides::of(const Incoming& room) {
  check_count(receiving, room.count);
  std::shared_ptr<const Shape> shape = received_.shape_of(room.type, room.count);
  Side side = make(*shape, receiving, room.memory, room.seal);
  side.kept = std::move(shape);
  return side;
}

const std::shared_ptr<const Shape>& Sides::recent(const Outgoing& message) {
  return recent_shape(last_sent_, sent_, sending, message.count, message.type);
}

const std::shared_ptr<const Shape>& Sides::recent(const Incoming& room) {
  return recent_shape(last_received_, received_, receiving, room.count, room.type);
}

Side Sides::to_side(const Shape& shape, const Outgoing& message) const {
  return make(shape, sending, memory_of(message), message.seal);
}

Side Sides::to_side(const Shape& shape, const Incoming& room) const {
  return make(shape, receiving, room.memory, room.seal);
}

Side Sides::make(const Shape& shape, std::string_view what, void* memory,
                 std::uint64_t seal) const {
  Side side;
  side.seal = seal;
  side.shape = &shape;
  side.memory = static_cast<std::byte*>(memory);
  side.bytes = shape.bytes;
  const PackPlan& plan = *shape.plan;
  // A type may hold addresses of its own, as with MPI_BOTTOM.
  if (side.bytes > 0 && memory == nullptr && plan.true_lower_bound <= 0) {
    throw Error(ErrorCode::usage, fmt::format("{} {} bytes at a null address", what, side.bytes));
  }
  if (side.bytes == 0) {
    side.contiguous = side.memory;
    return side;
  }
  if (shape.is_run) side.contiguous = side.memory + shape.offset;
  if (lanes_.count() > 0) {
    side.lane = lanes_.owner_of(side.memory + plan.true_lower_bound, side.bytes);
  }
  return side;
}

}  // namespace heddle::p2p
