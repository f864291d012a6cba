#include "node-runtime/transport/p2p/path_decision.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/core.h>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/transport/p2p/wire.hpp"

namespace heddle::p2p {
namespace {

bool is_host_run(const SideFacts& side) {
  return !side.on_device && side.is_contiguous;
}

/// A stage of a pipeline: the cost of each piece beside its bytes, and the rate of the bytes.
struct Stage {
  double latency_us = 0;
  double rate = 0;  ///< 10^9 bytes per second
  [[nodiscard]] double us(double bytes) const { return latency_us + bytes / rate * 1e-3; }
};

/// Stages that overlap, with `slots` pieces in flight: the first piece passes all stages; the later
/// ones follow at the rate of the slowest stage, or of slots that become free.
double pipeline_us(double bytes, double piece_bytes, int slots, std::span<const Stage> stages) {
  const double piece = std::min(bytes, piece_bytes);
  double round_us = 0;
  double slowest_us = 0;
  for (const Stage& stage : stages) {
    round_us += stage.us(piece);
    slowest_us = std::max(slowest_us, piece / stage.rate * 1e-3);
  }
  const double more = bytes > piece ? bytes / piece_bytes - 1 : 0;
  return round_us + more * std::max(slowest_us, round_us / slots);
}

class Predictor {
 public:
  Predictor(const PathQuery& query, const PathRates& rates, const PathSizes& sizes)
      : s_(query), rates_(rates), sizes_(sizes), bytes_(static_cast<double>(query.bytes)) {}

  [[nodiscard]] double us(Path path) const {
    switch (path) {
      case Path::eager:
        return rates_.note_us + (s_.receiver.on_device ? rates_.device_us : 0);
      case Path::message: {
        const std::array all{to_slot(s_.sender), Stage{rates_.message_us, rates_.message},
                             from_slot(s_.receiver)};
        const std::size_t first = is_host_run(s_.sender) ? 1 : 0;
        const std::size_t last = is_host_run(s_.receiver) ? 1 : 2;
        const std::span<const Stage> stages = std::span(all).subspan(first, last - first + 1);
        const double piece = stages.size() == 1 ? bytes_ : static_cast<double>(sizes_.piece_bytes);
        return 2 * rates_.note_us + pipeline_us(bytes_, piece, sizes_.pieces_ahead, stages);
      }
      case Path::shared: {
        const bool any_on_device = s_.sender.on_device || s_.receiver.on_device;
        const std::int64_t piece = sizes_.shared_piece(s_.bytes, any_on_device);
        const std::array stages{to_slot(s_.sender), note(), from_slot(s_.receiver)};
        return 2 * rates_.note_us +
               pipeline_us(bytes_, static_cast<double>(piece), sizes_.pieces_ahead, stages);
      }
      case Path::get:
        if (!s_.sender.on_device) return rates_.note_us + reading_us();
        return rates_.note_us + Stage{device_us(s_.works_here), direct()}.us(bytes_);
      case Path::put:
        return 3 * rates_.note_us + Stage{device_us(!s_.works_here), direct()}.us(bytes_);
      case Path::ring: {
        const auto piece = static_cast<double>(sizes_.ring_piece(s_.bytes));
        const std::array stages{to_ring(), note(), from_ring()};
        return 2 * rates_.note_us + pipeline_us(bytes_, piece, sizes_.ring_slots, stages);
      }
    }
    return 0;
  }

 private:
  /// The note that says a slot is full.
  [[nodiscard]] Stage note() const { return {rates_.note_us, 1e9}; }
  [[nodiscard]] Stage to_slot(const SideFacts& side) const {
    return side.on_device ? Stage{device_us(!s_.works_here), rates_.to_host}
                          : Stage{0, rates_.host};
  }
  [[nodiscard]] Stage from_slot(const SideFacts& side) const {
    return side.on_device ? Stage{device_us(s_.works_here), rates_.to_device}
                          : Stage{0, rates_.host};
  }
  [[nodiscard]] bool is_between_devices() const {
    return s_.sender.on_device && s_.receiver.on_device;
  }
  /// One operation, by the node that is to work on a shared GPU or by the other one. Where one side
  /// is on the host, the device of one node does everything.
  [[nodiscard]] double device_us(bool by_worker) const {
    const bool waits = s_.takes_turns && is_between_devices() && !by_worker;
    return rates_.device_us + (waits ? rates_.turn_us : 0);
  }
  /// One operation on a ring, on which both nodes' devices work.
  [[nodiscard]] double ring_us(bool by_worker) const {
    const bool waits = s_.takes_turns && (!is_between_devices() || !by_worker);
    return rates_.device_us + (waits ? rates_.turn_us : 0);
  }
  [[nodiscard]] Stage to_ring() const {
    const double us = ring_us(!s_.works_here);
    return s_.sender.on_device ? Stage{us, std::min(link(), rates_.pack)}
                               : Stage{us, rates_.to_device};
  }
  [[nodiscard]] Stage from_ring() const {
    const double us = ring_us(s_.works_here);
    return s_.receiver.on_device ? Stage{us, rates_.pack} : Stage{us, rates_.to_host};
  }
  /// From the sender's memory to the receiver's; by way of the caches where it is unpacked.
  [[nodiscard]] double reading_us() const {
    const double us = Stage{rates_.read_us, rates_.read}.us(bytes_);
    return is_host_run(s_.receiver) ? us : us + Stage{0, 2 * rates_.host}.us(bytes_);
  }
  [[nodiscard]] double link() const { return s_.same_device ? rates_.local : rates_.peer; }
  /// The rate of one operation between both sides' memory.
  [[nodiscard]] double direct() const {
    if (!s_.receiver.on_device) return rates_.to_host;
    if (!s_.sender.on_device) return rates_.to_device;
    const bool are_runs = s_.sender.is_contiguous && s_.receiver.is_contiguous;
    return are_runs ? link() : std::min(link(), rates_.pack);
  }

  const PathQuery& s_;
  const PathRates& rates_;
  const PathSizes& sizes_;
  double bytes_;
};

/// Which memory keeps a device from bringing the message in one go or by its ring; empty: none.
std::string_view unreached(const PathQuery& s) {
  const auto reaches = [](const SideFacts& side) { return side.on_device || side.is_locked; };
  if (!reaches(s.sender)) return "devices do not reach the sender's memory";
  return reaches(s.receiver) ? "" : "devices do not reach the receiver's memory";
}

std::string_view lack_of_get(const PathQuery& s) {
  if (!s.sender.on_device) {
    if (s.receiver.on_device) return "a device does not read another node's host memory";
    return s.sender.is_contiguous ? s.no_read : "the sender's memory is not contiguous";
  }
  if (const auto why = unreached(s); !why.empty()) return why;
  if (!s.sender.is_contiguous && !s.no_between.empty()) return s.no_between;
  if (!s.no_get.empty()) return s.no_get;
  return s.maps_get ? std::string_view() : not_mapped_yet;
}

std::string_view lack_of_put(const PathQuery& s) {
  if (!s.receiver.on_device) return "the receiver's memory is not on a device";
  if (const auto why = unreached(s); !why.empty()) return why;
  if (!s.receiver.is_contiguous && !s.no_between.empty()) return s.no_between;
  if (!s.no_put.empty()) return s.no_put;
  return s.maps_put ? std::string_view() : not_mapped_yet;
}

std::string_view lack_of_ring(const PathQuery& s) {
  if (!s.sender.on_device && !s.receiver.on_device) return "neither side's memory is on a device";
  if (const auto why = unreached(s); !why.empty()) return why;
  return s.no_ring;
}

/// Why `path` cannot be taken; empty where it can.
std::string_view lack_of(Path path, const PathQuery& s) {
  switch (path) {
    case Path::eager:
    case Path::message:
      return {};
    case Path::shared:
      return s.no_shared;
    case Path::get:
      return lack_of_get(s);
    case Path::put:
      return lack_of_put(s);
    case Path::ring:
      return lack_of_ring(s);
  }
  return {};
}

}  // namespace

bool PathChoice::would_map_for(Path path) const {
  return std::ranges::any_of(estimates, [path](const PathEstimate& estimate) {
    return estimate.path == path && estimate.lacks == not_mapped_yet;
  });
}

PathChoice PathDecision::choose(const PathQuery& query) const {
  const Predictor predictor(query, rates_, sizes_);
  const std::optional<Path> wanted = query.bytes == 0 ? Path::message : wanted_;
  PathChoice choice;
  constexpr std::array paths{Path::get, Path::put, Path::ring, Path::shared, Path::message};
  const auto is_better = [](const PathEstimate& a, const PathEstimate& b) {
    if (a.lacks.empty() != b.lacks.empty()) return a.lacks.empty();
    return a.lacks.empty() && a.predicted_us < b.predicted_us;
  };
  // Paths that can be taken come first, by time; equal ones in the order above. Insertion sort:
  // five.
  for (std::size_t i = 0; i < paths.size(); ++i) {
    PathEstimate estimate{paths.at(i), predictor.us(paths.at(i)), lack_of(paths.at(i), query)};
    const auto end = choice.estimates.begin() + static_cast<std::ptrdiff_t>(i);
    const auto place = std::upper_bound(choice.estimates.begin(), end, estimate, is_better);
    std::move_backward(place, end, end + 1);
    *place = estimate;
  }
  if (!wanted.has_value() || *wanted == Path::eager) return choice;
  const auto found = std::ranges::find(choice.estimates, *wanted, &PathEstimate::path);
  if (found->lacks.empty()) {
    std::rotate(choice.estimates.begin(), found, found + 1);
  } else {
    choice.note = fmt::format("{} was asked for, but {}", name_of(*wanted), found->lacks);
  }
  return choice;
}

bool PathDecision::posts_pieces(const PathQuery& query, std::int64_t eager_bytes_max) const {
  if (query.bytes <= eager_bytes_max || !is_host_run(query.receiver)) return false;
  return choose(query).path() == Path::message;
}

Handover PathDecision::hand_over(const PathQuery& query, bool are_pieces_posted,
                                 std::int64_t eager_bytes_max) const {
  if (query.bytes == 0) return Handover::deliver;
  if (are_pieces_posted) return Handover::pieces;
  if (!query.sender.on_device && query.bytes <= eager_bytes_max) return Handover::deliver;
  return choose(query).path() == Path::put ? Handover::put : Handover::announce;
}

PathPlan PathDecision::plan(const PathQuery& query, Path path) const {
  using Step = PathPlan::Step;
  constexpr std::int64_t longest = Wire::piece_bytes_max;
  const auto pieces_up_to = [&](std::int64_t piece_bytes, std::int32_t most) {
    const std::int64_t pieces = (query.bytes + piece_bytes - 1) / piece_bytes;
    return static_cast<std::int32_t>(std::min<std::int64_t>(pieces, most));
  };
  switch (path) {
    case Path::eager:
      break;
    case Path::message: {
      const bool is_direct = is_host_run(query.sender) && is_host_run(query.receiver);
      const std::int64_t piece = is_direct ? longest : sizes_.piece_bytes;
      const bool needs_slots = !is_host_run(query.receiver) && query.bytes > 0;
      return {Step::grant, piece, needs_slots ? pieces_up_to(piece, sizes_.pieces_ahead) : 0};
    }
    case Path::shared: {
      const bool any_on_device = query.sender.on_device || query.receiver.on_device;
      const std::int64_t piece = sizes_.shared_piece(query.bytes, any_on_device);
      return {Step::grant, piece, pieces_up_to(piece, sizes_.pieces_ahead)};
    }
    case Path::ring: {
      const std::int64_t piece = sizes_.ring_piece(query.bytes);
      return {Step::grant, piece, pieces_up_to(piece, sizes_.ring_slots)};
    }
    case Path::put:
      return {Step::grant, query.receiver.is_contiguous ? longest : query.bytes, 0};
    case Path::get:
      if (query.sender.on_device) {
        return {Step::fetch, query.sender.is_contiguous ? longest : query.bytes, 0};
      }
      return is_host_run(query.receiver) ? PathPlan{Step::read, sizes_.read_piece_bytes, 0}
                                         : PathPlan{Step::read, sizes_.piece_bytes, 1};
  }
  HEDDLE_CHECK(false, "a plan for path {}", name_of(path));
  return {};
}

}  // namespace heddle::p2p
