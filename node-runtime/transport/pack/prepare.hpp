#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/datatype/pack_plan.hpp"
#include "node-runtime/transport/pack/device_work.hpp"
#include "node-runtime/transport/pack/triangle_work.hpp"

/// From a plan and a range of its stream to what the threads of a device are given.
namespace heddle::packing {

/// The side that lies behind the link to the host, where parts of lines cost as much as wholes.
enum class FarSide : std::uint8_t {
  none,
  memory,  ///< that of the elements; between two shapes: the one that is read
  stream   ///< the packed one; between two shapes: the one that is written
};

/// A range of blocks or triangles under loops. Plain: the parameters of a byte kernel.
struct BlocksWork {
  PackPlan::Body body = PackPlan::Body::block;  ///< not units
  bool packs = true;
  std::uint32_t blocks_max = 0;  ///< thread blocks; 0: as many as fill the device
  LoopNest nest;                 ///< of all elements
  datatype::Triangle triangle;
  std::byte* memory = nullptr;
  std::byte* packed = nullptr;  ///< where the range's first byte is
  StreamRange range;            ///< not empty
  FarSide far = FarSide::none;
};

/// The units [first, first + count) of every body that the range touches. Plain, too.
struct UnitsWork {
  bool packs = true;
  std::uint32_t blocks_max = 0;
  LoopNest nest;
  std::byte* memory = nullptr;
  std::byte* packed = nullptr;
  StreamRange range;
  const WorkUnit* units = nullptr;  ///< in the device's memory, the first of them
  std::int64_t count = 0;
  std::uint32_t lanes_log2 = 5;
};

/// From one side to the other, which fit each other (LoopShape::fits). Plain, too.
struct BetweenWork {
  std::uint32_t blocks_max = 0;
  PackPlan::Body body = PackPlan::Body::block;
  FarSide far = FarSide::none;
  LoopNest from_nest;
  LoopNest to_nest;
  datatype::Triangle triangle;  ///< of the side that is read
  std::int64_t to_stride = 0;   ///< of the other one's columns
  const std::byte* from = nullptr;
  std::byte* to = nullptr;

  [[nodiscard]] static BetweenWork of(const LoopShape& from_shape, const LoopShape& to_shape);
  /// The blocks as columns of a matrix, where both sides are: columns of one length, or on one side
  /// a single run of them.
  [[nodiscard]] std::optional<CopyShape> columns() const;
};

/// Runs what has been prepared, in any order: no two touch the same byte of the stream.
class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  virtual void launch(const Strided& work, std::size_t word_bytes) = 0;
  virtual void launch(const Transposed& work, std::size_t word_bytes) = 0;
  virtual void launch(const Trapezoid& work, std::size_t word_bytes) = 0;
  virtual void launch(const Units& work) = 0;
  virtual void launch(const StridedBetween& work, std::size_t word_bytes) = 0;
  virtual void launch(const TrapezoidBetween& work, std::size_t word_bytes) = 0;
};

void prepare(const BlocksWork& work, Launcher& launcher);
void prepare(const UnitsWork& work, Launcher& launcher);
void prepare(const BetweenWork& work, Launcher& launcher);

/// Threads, as a power of two, that copy a unit where units have `bytes_mean` bytes.
[[nodiscard]] std::uint32_t lanes_log2_for(std::int64_t bytes_mean);

[[nodiscard]] Divisor divisor_of(std::int64_t value);

}  // namespace heddle::packing
