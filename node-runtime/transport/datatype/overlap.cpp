#include "node-runtime/transport/datatype/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <iterator>
#include <set>
#include <vector>

#include "base/error.hpp"

namespace heddle {
namespace datatype {
namespace {

/// Disjoint stretches of memory, in ascending order.
using Stretches = std::vector<Block>;

/// Sorts the stretches, and joins adjacent ones. False if two overlap.
bool order(Stretches& stretches) {
  const auto before = [](const Block& a, const Block& b) { return a.offset < b.offset; };
  if (!std::is_sorted(stretches.begin(), stretches.end(), before)) {
    std::sort(stretches.begin(), stretches.end(), before);
  }
  std::size_t kept = 0;
  for (std::size_t i = 1; i < stretches.size(); ++i) {
    Block& last = stretches[kept];
    const std::int64_t gap = stretches[i].offset - (last.offset + last.bytes);
    if (gap < 0) return false;
    if (gap == 0) {
      last.bytes += stretches[i].bytes;
    } else {
      stretches[++kept] = stretches[i];
    }
  }
  stretches.resize(std::min(stretches.size(), kept + 1));
  return true;
}

/// Whether copies of the stretches at 0, stride, .. (count - 1) * stride overlap, for stride > 0.
/// Two bytes of them coincide if and only if they are congruent modulo the stride and the
/// quotients of their offsets differ by less than the count.
bool copies_overlap(const Stretches& stretches, const Loop& loop) {
  struct End {
    std::int64_t at;
    bool begins;
    std::int64_t quotient;
  };
  std::vector<End> ends;
  ends.reserve(2 * stretches.size() + 2);
  const auto add = [&](std::int64_t begin, std::int64_t end, std::int64_t quotient) {
    ends.push_back({begin, true, quotient});
    ends.push_back({end, false, quotient});
  };
  const std::int64_t origin = stretches.front().offset;
  for (const Block& s : stretches) {
    if (s.bytes > loop.stride) return true;
    const std::int64_t quotient = (s.offset - origin) / loop.stride;
    const std::int64_t begin = (s.offset - origin) % loop.stride;
    add(begin, std::min(begin + s.bytes, loop.stride), quotient);
    if (begin + s.bytes > loop.stride) add(0, begin + s.bytes - loop.stride, quotient + 1);
  }
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) {
    return a.at != b.at ? a.at < b.at : !a.begins && b.begins;
  });
  std::set<std::int64_t> open;  // quotients of the stretches at this residue
  for (const End& end : ends) {
    if (!end.begins) {
      open.erase(end.quotient);
      continue;
    }
    const auto [place, is_new] = open.insert(end.quotient);
    if (!is_new) return true;
    if (place != open.begin() && end.quotient - *std::prev(place) < loop.count) return true;
    if (std::next(place) != open.end() && *std::next(place) - end.quotient < loop.count) {
      return true;
    }
  }
  return false;
}

/// What has been found free of overlaps so far: `stretches` under the loops that are `pending`, not
/// yet written out because the copies that they make lie one behind the other.
class Disjoint {
 public:
  /// False if the body overlaps itself.
  bool start(const PackPlan& plan, std::int64_t body_bytes) {
    switch (plan.body) {
      case PackPlan::Body::block:
        stretches_ = {{0, body_bytes}};
        break;
      case PackPlan::Body::triangle:
        // Ordered by address, each column before the next one, if at all.
        return start_triangle(plan.triangle);
      case PackPlan::Body::units:
        stretches_.reserve(plan.units.size());
        for (const WorkUnit& unit : plan.units) stretches_.push_back({unit.memory, unit.bytes});
        break;
    }
    const bool disjoint = order(stretches_);
    span_ = stretches_.back().offset + stretches_.back().bytes - stretches_.front().offset;
    return disjoint;
  }

  /// Adds a loop whose stride is no smaller than those before it.
  PackPlan::Overlap add(const Loop& loop) {
    if (loop.stride >= span_) {
      if (loop.stride == span_ && pending_.empty() && stretches_.size() == 1 && is_listed()) {
        stretches_.front().bytes *= loop.count;
      } else {
        pending_.push_back(loop);
      }
    } else {
      if (loop.stride == 0) return PackPlan::Overlap::some;
      if (!write_out()) return PackPlan::Overlap::undecided;
      if (copies_overlap(stretches_, loop)) return PackPlan::Overlap::some;
      pending_.push_back(loop);
    }
    span_ += (loop.count - 1) * loop.stride;
    return PackPlan::Overlap::none;
  }

 private:
  [[nodiscard]] bool is_listed() const { return triangle_.columns == 0; }

  bool start_triangle(const Triangle& triangle) {
    triangle_ = triangle;
    const std::int64_t last = triangle.columns - 1;
    const bool ascends = triangle.stride > 0;
    // Neighbours are the first to overlap: the longer one of the two that meet at each gap.
    const std::int64_t longest = ascends
                                     ? std::max(triangle.bytes_of(0), triangle.bytes_of(last - 1))
                                     : std::max(triangle.bytes_of(1), triangle.bytes_of(last));
    if (std::abs(triangle.stride) < longest) return false;
    const std::int64_t lowest = std::min<std::int64_t>(0, last * triangle.stride);
    const std::int64_t highest =
        std::max(triangle.bytes_of(0), last * triangle.stride + triangle.bytes_of(last));
    span_ = highest - lowest;
    return true;
  }

  /// Lists all stretches. False if they are too many.
  bool write_out() {
    std::int64_t count =
        is_listed() ? static_cast<std::int64_t>(stretches_.size()) : triangle_.columns;
    for (const Loop& loop : pending_) {
      if (__builtin_mul_overflow(count, loop.count, &count)) return false;
    }
    if (count > blocks_max) return false;
    for (std::int64_t j = 0; j < triangle_.columns; ++j) {
      stretches_.push_back({j * triangle_.stride, triangle_.bytes_of(j)});
    }
    triangle_.columns = 0;
    for (const Loop& loop : pending_) {
      const std::size_t listed = stretches_.size();
      for (std::int64_t i = 1; i < loop.count; ++i) {
        for (std::size_t s = 0; s < listed; ++s) {
          stretches_.push_back({stretches_[s].offset + i * loop.stride, stretches_[s].bytes});
        }
      }
    }
    pending_.clear();
    return order(stretches_);
  }

  Stretches stretches_;
  std::vector<Loop> pending_;
  Triangle triangle_;  ///< to be listed, if it has columns
  std::int64_t span_ = 0;
};

}  // namespace

PackPlan::Overlap overlap_of(const PackPlan& plan, const LoopNest& nest) {
  if (nest.body_bytes == 0) return PackPlan::Overlap::none;
  Disjoint disjoint;
  if (!disjoint.start(plan, nest.body_bytes)) return PackPlan::Overlap::some;
  // The direction of a loop changes nothing but where the whole lies.
  std::vector<Loop> loops(nest.loops.begin(),
                          nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.depth));
  for (Loop& loop : loops) loop.stride = std::abs(loop.stride);
  std::sort(loops.begin(), loops.end(),
            [](const Loop& a, const Loop& b) { return a.stride < b.stride; });
  for (const Loop& loop : loops) {
    const PackPlan::Overlap overlap = disjoint.add(loop);
    if (overlap != PackPlan::Overlap::none) return overlap;
  }
  return PackPlan::Overlap::none;
}

}  // namespace datatype

void check_receivable(const PackPlan& plan, std::int64_t count) {
  if (plan.stream_bytes(count) == 0) return;
  PackPlan::Overlap overlap = plan.overlap;
  const std::int64_t true_extent = plan.true_upper_bound - plan.true_lower_bound;
  if (count > 1 && overlap == PackPlan::Overlap::none && std::abs(plan.extent) < true_extent) {
    overlap = datatype::overlap_of(plan, plan.nest_of(count));
  }
  if (overlap == PackPlan::Overlap::none) return;
  if (overlap == PackPlan::Overlap::some) {
    throw Error(ErrorCode::usage,
                fmt::format("{} elements of {} bytes, {} bytes apart, are received into memory "
                            "that overlaps: some byte would be written twice; datatypes may "
                            "overlap only where they are sent",
                            count, plan.size, plan.extent));
  }
  throw Error(ErrorCode::usage,
              fmt::format("whether {} elements of {} bytes, {} bytes apart, overlap cannot be told "
                          "with less than {} blocks written out; receive into a type whose parts "
                          "do not interleave",
                          count, plan.size, plan.extent, datatype::blocks_max));
}

}  // namespace heddle
