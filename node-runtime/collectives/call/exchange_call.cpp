#include "node-runtime/collectives/call/exchange_call.hpp"

#include <algorithm>
#include <bit>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/transport/datatype/layout.hpp"
#include "node-runtime/transport/datatype/signature.hpp"

namespace heddle::collectives {
namespace {

__extension__ using Wide128 = __int128;

/// A part with the bytes that it touches, as integers.
struct PlacedPart {
  std::size_t number = 0;
  std::int32_t peer = 0;
  bool is_incoming = false;
  const Elements* elements = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::string describe() const {
    return fmt::format("{} part {} {} rank {}", is_incoming ? "incoming" : "outgoing", number,
                       is_incoming ? "from" : "to", peer);
  }
  [[nodiscard]] bool is_empty() const { return begin == end; }
};

template <class... Values>
void demand_of(const ExchangeCall& call, bool is_right, fmt::format_string<const Values&...> wrong,
               const Values&... values) {
  if (is_right) return;
  throw Error(ErrorCode::usage,
              fmt::format("{}: {}", call.describe(), fmt::format(wrong, values...)));
}

/// Checks a part by itself.
PlacedPart placed(const ExchangeCall& call, std::size_t number, bool is_incoming,
                  std::int32_t size) {
  const RankElements& part = is_incoming ? call.incoming[number] : call.outgoing[number];
  const Elements& e = part.elements;
  PlacedPart made{number, part.peer, is_incoming, &e};
  demand_of(call, part.peer >= 0 && part.peer < size, "{}; the group has ranks 0 to {}",
            made.describe(), size - 1);
  demand_of(call, e.count >= 0, "{} has {} elements; a count must not be negative", made.describe(),
            e.count);
  if (e.count == 0 || e.type.size() == 0) return made;
  const Wide128 last = static_cast<Wide128>(e.count - 1) * e.type.extent();
  const Wide128 begin = std::min<Wide128>(0, last) + e.type.true_lower_bound();
  const Wide128 end = std::max<Wide128>(0, last) + e.type.true_upper_bound();
  const Wide128 packed = static_cast<Wide128>(e.count) * e.type.size();
  constexpr Wide128 most = std::numeric_limits<std::int64_t>::max() / 2;
  demand_of(call, -most < begin && end < most && packed < most,
            "{}: {} elements of {} bytes each are too many", made.describe(), e.count,
            e.type.extent());
  demand_of(call, e.memory != nullptr, "{} is null, with {} elements", made.describe(), e.count);
  const auto base = static_cast<Wide128>(std::bit_cast<std::intptr_t>(e.memory));
  made.begin = static_cast<std::int64_t>(base + begin);
  made.end = static_cast<std::int64_t>(base + end);
  return made;
}

/// Bytes [begin, end) of a part.
struct Stretch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t part = 0;
};

/// Parts whose extents overlap, stretch by stretch in the order of addresses: where one overlaps
/// any before it, it overlaps the one before it that reaches furthest. Those that are only read
/// may.
void check_interleaved(const ExchangeCall& call, std::span<const PlacedPart> parts) {
  std::vector<Stretch> stretches;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Elements& e = *parts[p].elements;
    const auto base = std::bit_cast<std::intptr_t>(e.memory);
    const datatype::Layout all = datatype::repeated(e.type.layout(), e.count, e.type.extent());
    for (const datatype::Block& block : datatype::expanded(all)) {
      stretches.push_back({base + block.offset, base + block.offset + block.bytes, p});
    }
  }
  std::ranges::sort(stretches, {}, &Stretch::begin);
  const Stretch* furthest = nullptr;           // of all
  const Stretch* furthest_incoming = nullptr;  // of those that are written
  for (const Stretch& next : stretches) {
    const PlacedPart& part = parts[next.part];
    const Stretch* const other = part.is_incoming ? furthest : furthest_incoming;
    if (other != nullptr && other->end > next.begin) {
      const auto in_order = [](const PlacedPart& p) { return std::pair(p.is_incoming, p.number); };
      const auto [first, second] = std::ranges::minmax(parts[other->part], part, {}, in_order);
      demand_of(call, false, "{} and {} overlap; what a round receives must be memory of its own",
                first.describe(), second.describe());
    }
    if (furthest == nullptr || next.end > furthest->end) furthest = &next;
    if (part.is_incoming && (furthest_incoming == nullptr || next.end > furthest_incoming->end)) {
      furthest_incoming = &next;
    }
  }
}

/// Parts whose extents hang together are looked at block by block; most hang together with none.
void check_overlaps(const ExchangeCall& call, std::vector<PlacedPart> parts) {
  std::erase_if(parts, [](const PlacedPart& p) { return p.is_empty(); });
  std::ranges::sort(parts, {}, &PlacedPart::begin);
  for (std::size_t first = 0; first < parts.size();) {
    std::size_t end = first + 1;
    std::int64_t reach = parts[first].end;
    bool has_incoming = parts[first].is_incoming;
    for (; end < parts.size() && parts[end].begin < reach; ++end) {
      reach = std::max(reach, parts[end].end);
      has_incoming = has_incoming || parts[end].is_incoming;
    }
    if (end - first > 1 && has_incoming) {
      check_interleaved(call, std::span(parts).subspan(first, end - first));
    }
    first = end;
  }
}

using NumbersByPair = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int32_t>>;

/// The numbers of parts by (from, to).
NumbersByPair numbers_by_pair(const std::vector<std::vector<PartNote>>& notes, bool is_incoming) {
  NumbersByPair pairs;
  for (std::size_t rank = 0; rank < notes.size(); ++rank) {
    for (std::size_t n = 0; n < notes[rank].size(); ++n) {
      const auto own = static_cast<std::int64_t>(rank);
      const std::int64_t peer = notes[rank][n].peer;
      pairs[is_incoming ? std::pair(peer, own) : std::pair(own, peer)].push_back(
          static_cast<std::int32_t>(n));
    }
  }
  return pairs;
}

}  // namespace

std::string ExchangeCall::describe() const {
  return name.empty() ? std::string("an exchange") : fmt::format("exchange '{}'", name);
}

void check(const ExchangeCall& call, std::int32_t size) {
  constexpr std::size_t parts_max = std::size_t{1} << 20U;
  demand_of(call, call.outgoing.size() <= parts_max && call.incoming.size() <= parts_max,
            "{} outgoing and {} incoming parts; at most {} may be", call.outgoing.size(),
            call.incoming.size(), parts_max);
  std::vector<PlacedPart> parts;
  p2p::ShapeCache shapes(true);
  for (std::size_t n = 0; n < call.outgoing.size(); ++n) {
    parts.push_back(placed(call, n, false, size));
  }
  for (std::size_t n = 0; n < call.incoming.size(); ++n) {
    parts.push_back(placed(call, n, true, size));
    try {
      static_cast<void>(shapes.shape_of(parts.back().elements->type, parts.back().elements->count));
    } catch (const Error& error) {
      demand_of(call, false, "{}: {}", parts.back().describe(), error.what());
    }
  }
  check_overlaps(call, std::move(parts));
}

void find_lanes(ExchangeCall& call, const RankDevices& devices) {
  p2p::ShapeCache shapes(false);
  for (const bool is_incoming : {false, true}) {
    std::vector<RankElements>& parts = is_incoming ? call.incoming : call.outgoing;
    for (std::size_t n = 0; n < parts.size(); ++n) {
      const Elements& e = parts[n].elements;
      const auto shape = shapes.shape_of(e.type, e.count);
      if (shape->bytes == 0) continue;
      try {
        parts[n].lane = devices.lane_of(e.memory + shape->first, shape->bytes);
      } catch (const Error& error) {
        const PlacedPart part{n, parts[n].peer, is_incoming};
        demand_of(call, false, "{}: {}", part.describe(), error.what());
      }
    }
  }
}

std::string PartNote::describe() const {
  const bool is_plain = scalar >= 0 && element_bytes == size_of(static_cast<Scalar>(scalar));
  if (is_plain) {
    return fmt::format("{} elements of {}", count, heddle::name_of(static_cast<Scalar>(scalar)));
  }
  if (scalar < 0) return fmt::format("{} elements of {} bytes", count, element_bytes);
  return fmt::format("{} elements of {} bytes of {}", count, element_bytes,
                     heddle::name_of(static_cast<Scalar>(scalar)));
}

std::vector<PartNote> notes_of(const std::vector<RankElements>& parts) {
  std::vector<PartNote> notes;
  for (const RankElements& part : parts) {
    const Elements& e = part.elements;
    const Signature signature = e.type.signature().repeated(e.count);
    const auto scalar = e.type.signature().scalar();
    notes.push_back({part.peer, e.count, e.type.size(),
                     scalar ? static_cast<std::int64_t>(*scalar) : -1,
                     signature.digest(signature.bytes())});
  }
  return notes;
}

std::vector<MatchedPart> match(const ExchangeNotes& notes, const std::string& name) {
  const NumbersByPair sent = numbers_by_pair(notes.outgoing, false);
  const NumbersByPair received = numbers_by_pair(notes.incoming, true);
  const auto numbers = [](const NumbersByPair& pairs, const NumbersByPair::key_type& pair) {
    const auto found = pairs.find(pair);
    return found == pairs.end() ? std::span<const std::int32_t>() : std::span(found->second);
  };
  const auto demand_count = [&](const NumbersByPair::key_type& pair) {
    const std::size_t out = numbers(sent, pair).size();
    const std::size_t in = numbers(received, pair).size();
    if (out == in) return;
    throw Error(ErrorCode::usage,
                fmt::format("{}: rank {} has {} parts for rank {}, which has {} parts from it",
                            name, pair.first, out, pair.second, in));
  };
  for (const auto& [pair, unused] : received) demand_count(pair);
  std::vector<MatchedPart> parts;
  for (const auto& [pair, out] : sent) {
    demand_count(pair);
    const std::span<const std::int32_t> in = numbers(received, pair);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const auto& given =
          notes.outgoing[static_cast<std::size_t>(pair.first)][static_cast<std::size_t>(out[k])];
      const auto& taken =
          notes.incoming[static_cast<std::size_t>(pair.second)][static_cast<std::size_t>(in[k])];
      if (given.bytes() != taken.bytes() || given.digest != taken.digest) {
        throw Error(ErrorCode::usage,
                    fmt::format("{}: outgoing part {} of rank {} is {} for rank {}, whose incoming "
                                "part {} is {}",
                                name, out[k], pair.first, given.describe(), pair.second, in[k],
                                taken.describe()));
      }
      parts.push_back({Rank{static_cast<std::int32_t>(pair.first)},
                       Rank{static_cast<std::int32_t>(pair.second)}, out[k], in[k], given.bytes(),
                       given.digest});
    }
  }
  // Ranks ascend in the pairs; their parts do not, yet.
  std::ranges::sort(parts, {}, [](const MatchedPart& p) { return std::pair(p.from, p.outgoing); });
  return parts;
}

}  // namespace heddle::collectives
