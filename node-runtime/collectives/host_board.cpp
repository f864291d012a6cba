#include "node-runtime/collectives/host_board.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "node-runtime/collectives/call/plan.hpp"

namespace heddle::collectives {
namespace {

constexpr std::int32_t reducing_members_max =
    static_cast<std::int32_t>(ReduceOperation::inputs_max);

const Elements* one_of(const Call& call) {
  if (!call.inputs.empty()) return call.inputs.data();
  return call.outputs.empty() ? nullptr : call.outputs.data();
}

/// All members' blocks are in what one member posts.
bool posts_all_blocks(CollectiveKind kind) {
  return kind == CollectiveKind::scatter || kind == CollectiveKind::all_to_all ||
         kind == CollectiveKind::reduce_scatter;
}

}  // namespace

HostBoard::HostBoard(p2p::HostRegion memory, std::int32_t members, std::int32_t own,
                     std::vector<std::int32_t> places, Board::Patience patience,
                     RankDevices& devices)
    : memory_(std::move(memory)),
      places_(std::move(places)),
      board_(memory_.window(), members, own, std::move(patience)),
      devices_(devices) {}

void HostBoard::bring(const CallMemory& memory) const {
  memory.needs_devices() ? devices_.run(memory.packing()) : memory.pack_all();
}

void HostBoard::take_back(const CallMemory& memory) const {
  memory.needs_devices() ? devices_.run(memory.unpacking()) : memory.unpack_all();
}

bool HostBoard::takes(const Call& call) const {
  if (call.is_listed || !call.counts.empty() || call.options.chooses_algorithm() ||
      call.options.fragment_bytes > 0) {
    return false;
  }
  if (call.reduces() && board_.members() > reducing_members_max) return false;
  if (call.order() == Order::places && places_.empty()) return false;
  const Elements* const one = one_of(call);
  if (one == nullptr) return true;
  const std::int64_t blocks = posts_all_blocks(call.kind) ? board_.members() : 1;
  const auto room = static_cast<std::int64_t>(Board::slot_bytes);
  // Without a product that may not fit.
  return one->count <= room && one->type.size() <= room &&
         one->count * one->type.size() <= room / blocks;
}

std::span<const std::byte> HostBoard::take(std::int32_t member, std::uint64_t digest) {
  const Board::Posted posted = board_.take(member);
  if (posted.digest != digest) throw BoardMisfit{Rank{member}};
  return posted.bytes;
}

/// Bytes [begin, begin + bytes) of what the order's members [first, end) have posted, reduced.
void HostBoard::reduce(const Call& call, std::int32_t first, std::int32_t end, std::int64_t begin,
                       std::int64_t bytes, std::byte* to, std::uint64_t digest) {
  const Scalar scalar =
      scalar_of(call.inputs.empty() ? call.outputs.front() : call.inputs.front(), call);
  // What travels with the lines is not aligned.
  alignas(16) std::array<std::array<std::byte, 48>, reducing_members_max> aligned;
  std::array<const void*, reducing_members_max> inputs{};
  std::size_t count = 0;
  for (std::int32_t position = first; position < end; ++position) {
    const std::int32_t member =
        call.order() == Order::places ? places_[static_cast<std::size_t>(position)] : position;
    const std::span<const std::byte> posted =
        take(member, digest)
            .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(bytes));
    const std::byte* from = posted.data();
    if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0 && posted.size() <= aligned[0].size()) {
      std::memcpy(aligned.at(count).data(), from, posted.size());
      from = aligned.at(count).data();
    }
    inputs.at(count++) = from;
  }
  call.operation.reduce(scalar, to, std::span(inputs).first(count),
                        bytes / call.operation.element_bytes(scalar));
}

CallMemory HostBoard::memory_of(const std::vector<Elements>& list, const Call& call, Side side) {
  const std::int32_t blocks = call.has_blocks(side) ? board_.members() : 1;
  std::vector<Elements> all = list;
  for (Elements& one : all) one.count *= blocks;
  return {all, blocks, CallMemory::Where::in_place, side == Side::input ? inputs_ : outputs_,
          Home{&devices_}};
}

void HostBoard::check_types(const Call& call) {
  static_cast<void>(memory_of(call.outputs, call, Side::output));
}

void HostBoard::run(const Call& call, std::uint64_t seal) {
  const std::int32_t members = board_.members();
  const std::int32_t own = board_.own();
  const bool is_root = call.is_rooted() && call.root == own;
  const CallMemory out = memory_of(call.outputs, call, Side::output);
  const CallMemory in = call.is_in_place ? out : memory_of(call.inputs, call, Side::input);
  const bool has_in = call.is_in_place || !call.inputs.empty();
  const bool in_has_blocks =
      call.has_blocks(Side::input) || (call.is_in_place && call.has_blocks(Side::output));
  const auto at = [](const CallMemory& memory, std::int32_t block) {
    return memory.base() + memory.block(block).offset;
  };

  // What this member shows: all of its input, or its own block of what it has in place.
  CallMemory::Block shown{};
  if (has_in) {
    const bool is_gathered_in_place = call.is_in_place && call.kind == CollectiveKind::all_gather;
    shown = in.block(is_gathered_in_place ? own : 0);
    if (in_has_blocks && !is_gathered_in_place) shown.bytes *= members;
    bring(in);
  }
  CallMemory::Block known = shown;
  if (!has_in && !call.outputs.empty()) known = out.block(0);
  const std::uint64_t digest =
      seal ^ (known.signature * 31 +
              static_cast<std::uint64_t>(
                  posts_all_blocks(call.kind) && has_in ? known.bytes / members : known.bytes));
  const bool gives =
      has_in && (!call.is_rooted() || is_root || call.kind == CollectiveKind::gather ||
                 call.kind == CollectiveKind::reduce);
  const std::size_t bytes = gives ? static_cast<std::size_t>(shown.bytes) : 0;
  const std::span<std::byte> room = board_.room(bytes);
  if (bytes > 0) std::memcpy(room.data(), in.base() + shown.offset, bytes);
  board_.post(digest, bytes);

  const auto copy_from = [&](std::int32_t member, std::int64_t begin, std::int32_t block) {
    const std::span<const std::byte> posted = take(member, digest);
    const auto length = static_cast<std::size_t>(out.block(block).bytes);
    if (length > 0) std::memcpy(at(out, block), posted.data() + begin, length);
  };
  switch (call.kind) {
    case CollectiveKind::barrier:
      for (std::int32_t m = 0; m < members; ++m) static_cast<void>(take(m, digest));
      return;
    case CollectiveKind::broadcast:
      if (is_root) return;
      copy_from(call.root, 0, 0);
      break;
    case CollectiveKind::scatter:
      copy_from(call.root, own * out.block(0).bytes, 0);
      break;
    case CollectiveKind::gather:
      if (!is_root) return;
      for (std::int32_t m = 0; m < members; ++m) copy_from(m, 0, m);
      break;
    case CollectiveKind::all_gather:
      for (std::int32_t m = 0; m < members; ++m) copy_from(m, 0, m);
      break;
    case CollectiveKind::all_to_all:
      for (std::int32_t m = 0; m < members; ++m) copy_from(m, own * out.block(0).bytes, m);
      break;
    case CollectiveKind::reduce:
      if (!is_root) return;
      reduce(call, 0, members, 0, out.block(0).bytes, at(out, 0), digest);
      break;
    case CollectiveKind::all_reduce:
      reduce(call, 0, members, 0, out.block(0).bytes, at(out, 0), digest);
      break;
    case CollectiveKind::reduce_scatter:
      reduce(call, 0, members, own * out.block(0).bytes, out.block(0).bytes, at(out, 0), digest);
      break;
    case CollectiveKind::scan:
      reduce(call, 0, own + 1, 0, out.block(0).bytes, at(out, 0), digest);
      break;
    case CollectiveKind::exclusive_scan:
      if (own == 0) return;
      reduce(call, 0, own, 0, out.block(0).bytes, at(out, 0), digest);
      break;
  }
  take_back(out);
}

}  // namespace heddle::collectives
