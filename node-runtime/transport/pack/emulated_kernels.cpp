#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/pack/pack_kernels.hpp"

namespace heddle::packing {
namespace {

/// Runs units as one thread.
class UnitsOnHost final : public Launcher {
 public:
  explicit UnitsOnHost(bool packs) : packs_(packs) {}

  void launch(const Units& work) override {
    Units whole = work;
    whole.lanes_log2 = 0;
    if (packs_) {
      copy_units<true>(whole, {});
    } else {
      copy_units<false>(whole, {});
    }
  }
  void launch(const Strided&, std::size_t) override { refuse(); }
  void launch(const Transposed&, std::size_t) override { refuse(); }
  void launch(const Trapezoid&, std::size_t) override { refuse(); }
  void launch(const StridedBetween&, std::size_t) override { refuse(); }
  void launch(const TrapezoidBetween&, std::size_t) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw Error(ErrorCode::internal, "units were prepared as something else");
  }

  bool packs_;
};

}  // namespace

void blocks_emulated(const ByteParameters& parameters) {
  const auto work = parameters.as<BlocksWork>();
  // All elements as one: a plan without units allocates nothing.
  PackPlan plan;
  plan.body = work.body;
  plan.nest = work.nest;
  plan.triangle = work.triangle;
  plan.size = work.nest.body_bytes;
  for (std::size_t l = 0; l < work.nest.depth; ++l) plan.size *= work.nest.loops[l].count;
  if (work.packs) {
    pack(plan, 1, work.memory, work.range, work.packed);
  } else {
    unpack(plan, 1, work.range, work.packed, work.memory);
  }
}

/// Through a buffer that the caches hold.
void between_emulated(const ByteParameters& parameters) {
  const auto work = parameters.as<BetweenWork>();
  const auto plan_of = [&](const LoopNest& nest, std::int64_t stride) {
    PackPlan plan;
    plan.body = work.body;
    plan.nest = nest;
    plan.triangle = work.triangle;
    plan.triangle.stride = stride;
    plan.size = nest.body_bytes;
    for (std::size_t l = 0; l < nest.depth; ++l) plan.size *= nest.loops[l].count;
    return plan;
  };
  const PackPlan from = plan_of(work.from_nest, work.triangle.stride);
  const PackPlan to = plan_of(work.to_nest, work.to_stride);
  std::array<std::byte, 16384> between;
  for (std::int64_t at = 0; at < from.size;) {
    const StreamRange range{
        at, std::min<std::int64_t>(static_cast<std::int64_t>(between.size()), from.size - at)};
    pack(from, 1, work.from, range, between.data());
    unpack(to, 1, range, between.data(), work.to);
    at += range.bytes;
  }
}

/// Reads the units where a device would, so that what is kept there is put to the test.
void units_emulated(const ByteParameters& parameters) {
  const auto work = parameters.as<UnitsWork>();
  UnitsOnHost launcher(work.packs);
  prepare(work, launcher);
}

}  // namespace heddle::packing
