#include "node-runtime/collectives/call/call.hpp"

#include <algorithm>
#include <bit>
#include <fmt/core.h>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/device/device.hpp"
#include "node-runtime/transport/datatype/signature.hpp"

namespace heddle::collectives {
namespace {

__extension__ using Wide = __int128;

/// Throws Error(usage) with the call and what is wrong with it, unless `is_right`.
template <class... Values>
void demand(const Call& call, bool is_right, fmt::format_string<const Values&...> wrong,
            const Values&... values) {
  if (is_right) return;
  throw Error(ErrorCode::usage,
              fmt::format("{}: {}", call.describe(), fmt::format(wrong, values...)));
}

/// Bytes [begin, end) that elements touch, as integers; empty without elements.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

std::string_view name_of_side(bool is_input) {
  return is_input ? "the input" : "the output";
}

Extent extent_of(const Elements& e, const Call& call, bool is_input) {
  demand(call, e.count >= 0, "{} has {} elements; a count must not be negative",
         name_of_side(is_input), e.count);
  if (e.count == 0 || e.type.size() == 0) return {};
  const Wide last = static_cast<Wide>(e.count - 1) * e.type.extent();
  const Wide begin = std::min<Wide>(0, last) + e.type.true_lower_bound();
  const Wide end = std::max<Wide>(0, last) + e.type.true_upper_bound();
  const Wide packed = static_cast<Wide>(e.count) * e.type.size();
  constexpr Wide most = std::numeric_limits<std::int64_t>::max() / 2;
  demand(call, -most < begin && end < most && packed < most,
         "{} elements of {} bytes each are too many", e.count, e.type.extent());
  demand(call, e.memory != nullptr, "{} is null, with {} elements", name_of_side(is_input),
         e.count);
  const auto base = static_cast<Wide>(std::bit_cast<std::intptr_t>(e.memory));
  return {static_cast<std::int64_t>(base + begin), static_cast<std::int64_t>(base + end)};
}

/// Elements for each rank in one buffer: as many times as many.
Elements of_all(const Elements& each, std::int32_t size, const Call& call) {
  demand(call, each.count <= std::numeric_limits<std::int64_t>::max() / size,
         "{} elements for each of {} ranks are too many", each.count, size);
  Elements all = each;
  all.count *= size;
  return all;
}

/// Elements that a rank gives itself must be those that it takes.
void check_own_block(const Call& call, std::int32_t own) {
  if (call.is_in_place || call.inputs.empty() || call.outputs.empty()) return;
  if (call.is_rooted() && call.root != own) return;
  const auto at = [&](const std::vector<Elements>& list) -> const Elements& {
    return list.size() > 1 ? list[static_cast<std::size_t>(own)] : list.front();
  };
  const Elements& from = at(call.inputs);
  const Elements& to = at(call.outputs);
  Signature given = from.type.signature().repeated(from.count);
  if (!call.counts.empty()) {
    given = from.type.signature().repeated(call.counts[static_cast<std::size_t>(own)]);
    const std::int64_t all =
        std::accumulate(call.counts.begin(), call.counts.end(), std::int64_t{0});
    demand(call, from.count == all, "the input has {} elements, the counts of all ranks make {}",
           from.count, all);
  }
  const Signature taken = to.type.signature().repeated(to.count);
  demand(
      call,
      given.bytes() == taken.bytes() && given.digest(given.bytes()) == taken.digest(taken.bytes()),
      "this rank's own part of the input is {} bytes, of the output {}, or they are of "
      "other scalars",
      given.bytes(), taken.bytes());
}

}  // namespace

Elements::Elements(const Outgoing& from)
    // Inputs are only read.
    : memory(static_cast<std::byte*>(
          const_cast<void*>(from.memory))),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
      count(from.count),
      type(from.type) {}

Elements::Elements(const Incoming& into)
    : memory(static_cast<std::byte*>(into.memory)), count(into.count), type(into.type) {}

bool Call::is_rooted() const {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter ||
         kind == CollectiveKind::gather || kind == CollectiveKind::reduce;
}

bool Call::reduces() const {
  return kind == CollectiveKind::reduce || kind == CollectiveKind::all_reduce ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scan ||
         kind == CollectiveKind::exclusive_scan;
}

bool Call::may_reorder() const {
  return reduces() && kind != CollectiveKind::scan && kind != CollectiveKind::exclusive_scan &&
         operation.is_commutative();
}

bool Call::is_exact() const {
  return operation.is_exact(scalar_of(inputs.empty() ? outputs.front() : inputs.front(), *this));
}

Order Call::order() const {
  return may_reorder() ? options.order.value_or(Order::ranks) : Order::ranks;
}

bool Call::has_blocks(Side side) const {
  if (is_listed) return false;
  switch (kind) {
    case CollectiveKind::scatter:
      return side == Side::input;
    case CollectiveKind::reduce_scatter:
      return side == Side::input && counts.empty();
    case CollectiveKind::gather:
    case CollectiveKind::all_gather:
      return side == Side::output;
    case CollectiveKind::all_to_all:
      return true;
    default:
      return false;
  }
}

CallSummary Call::summary() const {
  CallSummary made;
  made.kind = kind;
  made.is_rooted = is_rooted();
  made.root = root;
  made.is_listed = is_listed;
  made.is_in_place = is_in_place;
  made.has_counts = !counts.empty();
  if (reduces()) made.operation = operation;
  made.order = order();
  made.name = options.name;
  const Elements* const one = !inputs.empty()    ? inputs.data()
                              : !outputs.empty() ? outputs.data()
                                                 : nullptr;
  if (one != nullptr && !is_listed && counts.empty()) {
    made.count = one->count;
    made.type = one->type;
  }
  return made;
}

std::string CallSummary::describe() const {
  std::string text(name.empty() ? std::string() : fmt::format("'{}', ", name));
  text += name_of(kind);
  if (is_listed) {
    text += " with a buffer for each rank";
  } else if (has_counts) {
    text += " with a count for each rank";
  } else if (kind != CollectiveKind::barrier) {
    const auto scalar = type.signature().scalar();
    const bool is_plain = scalar && type.size() == size_of(*scalar);
    text += fmt::format(
        " of {} elements of {}", count,
        is_plain ? std::string(heddle::name_of(*scalar)) : fmt::format("{} bytes", type.size()));
  }
  if (operation) text += fmt::format(" with {}", operation->name());
  if (order == Order::places) text += " in the order of places";
  if (is_rooted) text += fmt::format(", root {}", root);
  if (is_in_place) text += ", in place";
  return text;
}

Scalar scalar_of(const Elements& elements, const Call& call) {
  const auto scalar = elements.type.signature().scalar();
  demand(call, scalar.has_value() || elements.count == 0 || elements.type.size() == 0,
         "a reduction of a type of several scalars; it must consist of one kind");
  return scalar.value_or(Scalar::byte);
}

namespace {

/// Both sides of a reduction consist of one scalar, which the operation takes.
void check_scalars(const Call& call) {
  std::optional<Scalar> scalar;
  for (const std::vector<Elements>* side : {&call.inputs, &call.outputs}) {
    for (const Elements& one : *side) {
      const Scalar found = scalar_of(one, call);
      if (one.count == 0 || one.type.size() == 0) continue;
      demand(call, !scalar || *scalar == found, "the input is of {}, the output of {}",
             name_of(*scalar), name_of(found));
      scalar = found;
    }
  }
  demand(call, !scalar || call.operation.takes(*scalar), "it has no meaning for {}",
         name_of(*scalar));
}

/// A rank's block is whole elements of the operation's. After check_scalars().
void check_whole_elements(const Call& call) {
  const std::int64_t each = call.operation.scalars_per_element();
  if (each == 1) return;
  const auto check_block = [&](const Elements& one, std::int64_t count, bool is_input) {
    const std::int64_t scalars = one.type.size() / size_of(scalar_of(one, call));
    // Without a product that may not fit.
    demand(call, (count % each) * (scalars % each) % each == 0,
           "{} has {} times {} scalars for a rank, which are no whole number of elements of {} "
           "scalars",
           name_of_side(is_input), count, scalars, each);
  };
  for (const Elements& one : call.outputs) check_block(one, one.count, false);
  for (const Elements& one : call.inputs) {
    if (call.counts.empty()) check_block(one, one.count, true);
    for (const std::int64_t count : call.counts) check_block(one, count, true);
  }
}

}  // namespace

void check(const Call& call, std::int32_t own, std::int32_t size) {
  demand(call, !call.is_rooted() || (call.root >= 0 && call.root < size),
         "the group has ranks 0 to {}", size - 1);
  demand(call, call.options.fragment_bytes >= 0, "fragments of {} bytes",
         call.options.fragment_bytes);
  const bool is_root = call.is_rooted() && call.root == own;
  const bool has_inputs = call.kind != CollectiveKind::broadcast || is_root;
  const auto check_list = [&](const std::vector<Elements>& list, bool is_input) {
    demand(call, std::cmp_equal(list.size(), size),
           "{} is {} buffers; it must be one for each of {} ranks", name_of_side(is_input),
           list.size(), size);
  };
  if (call.is_listed) {
    if (call.kind == CollectiveKind::all_to_all ||
        (call.kind == CollectiveKind::scatter && is_root)) {
      check_list(call.inputs, true);
    }
    if (call.kind == CollectiveKind::all_to_all || call.kind == CollectiveKind::all_gather ||
        (call.kind == CollectiveKind::gather && is_root)) {
      check_list(call.outputs, false);
    }
  }
  if (!call.counts.empty()) {
    demand(call, std::cmp_equal(call.counts.size(), size), "{} counts for {} ranks",
           call.counts.size(), size);
    for (const std::int64_t count : call.counts) {
      demand(call, count >= 0, "a count of {}", count);
    }
  }
  std::vector<Extent> reads;
  std::vector<Extent> writes;
  const auto add = [&](const std::vector<Elements>& list, bool is_input) {
    for (const Elements& one : list) {
      const bool blocks = call.has_blocks(is_input ? Side::input : Side::output);
      const Elements all = blocks ? of_all(one, size, call) : one;
      (is_input ? reads : writes).push_back(extent_of(all, call, is_input));
    }
  };
  if (has_inputs) add(call.inputs, true);
  add(call.outputs, false);
  if (call.is_in_place || call.kind == CollectiveKind::broadcast) reads.clear();
  const auto overlaps = [](const Extent& a, const Extent& b) {
    return a.begin < b.end && b.begin < a.end;
  };
  for (std::size_t w = 0; w < writes.size(); ++w) {
    for (const Extent& read : reads) {
      demand(call, !overlaps(read, writes[w]),
             "input and output overlap; one buffer is given once, where the operation has a "
             "form for that");
    }
    for (std::size_t other = 0; other < w; ++other) {
      demand(call, !overlaps(writes[other], writes[w]), "the buffers of ranks {} and {} overlap",
             other, w);
    }
  }
  if (call.reduces()) check_scalars(call);
  check_own_block(call, own);
  if (call.reduces()) check_whole_elements(call);
}

void check_on_stream(const Call& call, DeviceBackend backend) {
  demand(
      call, !call.reduces() || call.operation.has_device_form(backend),
      "the operation has no form for devices of the backend {}; on a stream nothing is brought to "
      "the host. For GPUs, make_reduce_operation() has to be compiled by nvcc",
      name_of(backend));
}

}  // namespace heddle::collectives
