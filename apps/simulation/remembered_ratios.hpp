#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernel_case.hpp"
#include "node-runtime/protocol/types.hpp"

namespace heddle {

/// Cases whose operands are as wide, and nearly as high: tall tiles of QR, each with another first
/// row. One of few rows reaches a fraction of the operations a second of a tall one.
struct LikeCase {
  const Kernel* kernel = nullptr;
  std::array<std::int64_t, protocol::accesses_max> columns{};   ///< of operands
  std::array<std::uint64_t, protocol::accesses_max> heights{};  ///< of their rows, the power of two

  [[nodiscard]] static LikeCase of(const KernelCase& what) {
    LikeCase result{what.kernel, {}, {}};
    for (std::size_t i = 0; i < what.operands.size(); ++i) {
      result.columns.at(i) = what.operands[i].columns;
      result.heights.at(i) = std::bit_floor(static_cast<std::uint64_t>(what.operands[i].rows));
    }
    return result;
  }
  friend bool operator==(const LikeCase&, const LikeCase&) = default;
};

/// A case, and what runs beside it.
template <typename Crowd>
struct CrowdedCase {
  const KernelCase& what;
  Crowd crowd;
};

/// What cases take over what others take, each beside a crowd. A pair that is like one met before
/// takes as much longer or shorter than that as its operations are more or fewer. Some dozens.
template <typename Crowd>
class RememberedRatios {
 public:
  /// `timed()` where none was like it.
  template <typename Timed>
  [[nodiscard]] double ratio(const CrowdedCase<Crowd>& one, const CrowdedCase<Crowd>& other,
                             const Timed& timed) {
    const Pace wanted{LikeCase::of(one.what), one.crowd, LikeCase::of(other.what), other.crowd};
    const double works = work_of(one.what) / work_of(other.what);
    const auto known = std::ranges::find_if(paces_, [&](const Pace& pace) {
      return pace.one == wanted.one && pace.other == wanted.other && pace.crowd == wanted.crowd &&
             pace.of_other == wanted.of_other;
    });
    if (known != paces_.end()) return known->pace * works;
    const double ratio = timed();
    paces_.push_back(wanted);
    paces_.back().pace = ratio / works;
    return ratio;
  }

 private:
  struct Pace {
    LikeCase one;
    Crowd crowd;
    LikeCase other;
    Crowd of_other;
    double pace = 0;  ///< the ratio over that of the operations
  };

  /// Operations, or of a copy elements.
  static double work_of(const KernelCase& what) {
    const double flops = flops_of(what);
    if (flops > 0 || what.operands.empty()) return flops + 1;
    return static_cast<double>(what.operands[0].rows * what.operands[0].columns) + 1;
  }

  std::vector<Pace> paces_;
};

}  // namespace heddle
