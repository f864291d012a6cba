#include "node-runtime/device/pooled_device.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <iterator>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

/// Distinguishes identities of adopted allocations from the allocator's.
constexpr std::uint64_t foreign_bit = std::uint64_t{1} << 63U;

/// Bytes from the first byte of a block to past its last; nullopt on overflow.
std::optional<std::size_t> extent(const CopyShape& shape, std::size_t leading) {
  std::size_t gaps = 0;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(shape.columns - 1, leading, &gaps) ||
      __builtin_add_overflow(gaps, shape.column_bytes, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace

// ---- life ------------------------------------------------------------------------------------

PooledDevice::PooledDevice() : exceptions_at_start_(std::uncaught_exceptions()) {
  allocators_.reserve(segments_max);  // so that a segment that was taken is kept
}

void PooledDevice::set_memory(std::uint64_t bytes, std::uint64_t used_bytes_max) {
  used_bytes_max_ = used_bytes_max;
  info_.memory_bytes = bytes;
}

void PooledDevice::add_segment(std::byte* address, std::uint64_t bytes) {
  const std::size_t count = segment_count_.load(std::memory_order_relaxed);
  HEDDLE_CHECK(count < segments_max, "{}: {} segments", label(), count);
  segments_[count] = {address, bytes};
  allocators_.emplace_back(bytes);
  // Release: who sees the new count sees the segment.
  segment_count_.store(count + 1, std::memory_order_release);
}

std::optional<std::size_t> PooledDevice::segment_of(const void* address) const {
  const std::span<const Segment> all = segments();
  for (std::size_t s = 0; s < all.size(); ++s) {
    if (all[s].contains(address)) return s;
  }
  return std::nullopt;
}

PooledDevice::Segment PooledDevice::take_segment(std::uint64_t /*bytes*/,
                                                 std::uint64_t /*bytes_max*/) {
  return {};
}

void PooledDevice::check_unused() const {
  // Relaxed: the destroying thread has synchronised with all streams and events.
  HEDDLE_CHECK(streams_.load(std::memory_order_relaxed) == 0, "{} is destroyed before {} streams",
               label(), streams_.load(std::memory_order_relaxed));
  HEDDLE_CHECK(events_.load(std::memory_order_relaxed) == 0, "{} is destroyed before {} events",
               label(), events_.load(std::memory_order_relaxed));
  if (std::uncaught_exceptions() == exceptions_at_start_) {
    const bool is_unused =
        used_count() == 0 && opened_.empty() && host_.empty() && registered_.empty();
    HEDDLE_CHECK(is_unused,
                 "{} is destroyed with {} allocations ({}), {} opened mappings, {} host "
                 "allocations and {} pieces of registered host memory",
                 label(), used_count(), format_bytes(used_bytes()), opened_.size(), host_.size(),
                 registered_.size());
  }
}

void PooledDevice::give_back_host() {
  for (const auto& [address, bytes] : host_) return_host(address);
  for (const auto& [address, bytes] : registered_) unpin(address);
}

std::string PooledDevice::place(std::uint64_t stream) const {
  return fmt::format("{}, stream {}", label(), stream);
}

// ---- memory ----------------------------------------------------------------------------------

std::uint64_t PooledDevice::used_bytes() const {
  std::uint64_t bytes = 0;
  for (const BlockAllocator& one : allocators_) bytes += one.used_bytes();
  return bytes;
}

std::uint64_t PooledDevice::used_count() const {
  std::uint64_t count = 0;
  for (const BlockAllocator& one : allocators_) count += one.used_count();
  return count;
}

std::uint64_t PooledDevice::bytes_left() const {
  if (segments().size() == segments_max) return 0;
  std::uint64_t left = info_.memory_bytes;
  for (const Segment& segment : segments()) left -= std::min(left, segment.bytes);
  return left;
}

std::uint64_t PooledDevice::available() const {
  std::uint64_t largest = bytes_left();
  for (const BlockAllocator& one : allocators_) largest = std::max(largest, one.largest_free());
  const std::uint64_t used = used_bytes();
  return used >= used_bytes_max_ ? 0 : std::min(largest, used_bytes_max_ - used);
}

std::optional<BlockAllocator::Block> PooledDevice::block_at(const void* address) const {
  constexpr int segment_shift = 48;
  const auto segment = segment_of(address);
  if (!segment) return std::nullopt;
  auto block = allocators_[*segment].find(segments_[*segment].offset_of(address));
  if (block) block->id |= static_cast<std::uint64_t>(*segment) << segment_shift;
  return block;
}

std::byte* PooledDevice::allocate_from_segments(std::uint64_t bytes) {
  for (std::size_t s = 0; s < allocators_.size(); ++s) {
    if (const auto block = allocators_[s].allocate(bytes)) {
      return segments_[s].address + block->begin;
    }
  }
  return nullptr;
}

std::uint64_t PooledDevice::memory_available() const {
  const std::scoped_lock lock(mutex_);
  return available();
}

DeviceMemory PooledDevice::allocate(std::size_t bytes) {
  HEDDLE_CHECK(bytes > 0);
  const std::scoped_lock lock(mutex_);
  const std::uint64_t bytes_max = available();
  std::byte* address = nullptr;
  if (bytes <= bytes_max) address = allocate_from_segments(bytes);
  if (bytes <= bytes_max && address == nullptr) {
    const Segment more = take_segment(BlockAllocator::rounded(bytes), bytes_left());
    if (more.address != nullptr) {
      add_segment(more.address, more.bytes);
      address = allocate_from_segments(bytes);
    }
  }
  if (address == nullptr) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: out of memory: {} asked for, largest free block {}, {} in all; "
                            "make the pool smaller or the device's memory larger",
                            label(), format_bytes(bytes), format_bytes(bytes_max),
                            format_bytes(info_.memory_bytes)));
  }
  return {address, bytes};
}

void PooledDevice::free(const DeviceMemory& memory) {
  const std::scoped_lock lock(mutex_);
  const auto segment = segment_of(memory.address);
  const std::uint64_t offset = segment ? segments_[*segment].offset_of(memory.address) : 0;
  const auto block = block_at(memory.address);
  if (!block || block->begin != offset || block->bytes != memory.bytes) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: {} at {} is freed, but was not allocated here, or is free already",
                            label(), format_bytes(memory.bytes), fmt::ptr(memory.address)));
  }
  discard(memory);
  HEDDLE_CHECK(allocators_[*segment].release(offset));
}

void* PooledDevice::allocate_host(std::size_t bytes) {
  HEDDLE_CHECK(bytes > 0);
  void* address = take_host(bytes);
  const std::scoped_lock lock(mutex_);
  host_.emplace(static_cast<std::byte*>(address), bytes);
  return address;
}

void PooledDevice::free_host(void* address) {
  {
    const std::scoped_lock lock(mutex_);
    if (host_.erase(static_cast<std::byte*>(address)) == 0) {
      throw Error(ErrorCode::internal,
                  fmt::format("{}: host memory at {} is freed, but was not allocated here", label(),
                              fmt::ptr(address)));
    }
  }
  return_host(address);
}

void PooledDevice::register_host(void* address, std::size_t bytes) {
  pin(address, bytes);
  const std::scoped_lock lock(mutex_);
  if (!registered_.emplace(static_cast<std::byte*>(address), bytes).second) {
    throw Error(ErrorCode::internal, fmt::format("{}: host memory at {} is registered already",
                                                 label(), fmt::ptr(address)));
  }
}

void PooledDevice::unregister_host(void* address) {
  {
    const std::scoped_lock lock(mutex_);
    if (registered_.erase(static_cast<std::byte*>(address)) == 0) {
      throw Error(ErrorCode::internal, fmt::format("{}: host memory at {} was not registered here",
                                                   label(), fmt::ptr(address)));
    }
  }
  unpin(address);
}

std::optional<MemoryOrigin> PooledDevice::origin_of(const void* address, std::size_t bytes) const {
  const std::scoped_lock lock(mutex_);
  if (const auto segment = segment_of(address)) {
    const std::uint64_t offset = segments_[*segment].offset_of(address);
    const auto block = allocators_[*segment].find(offset);
    if (block && bytes <= block->bytes - (offset - block->begin)) return MemoryOrigin::own;
  } else if (const Foreign* foreign = find_adopted(address)) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - foreign->base);
    if (bytes <= foreign->bytes - offset) return MemoryOrigin::own;
  } else {
    const auto after = opened_.upper_bound(static_cast<const std::byte*>(address));
    if (after != opened_.begin()) {
      const auto& [base, opened] = *std::prev(after);
      const std::uint64_t offset =
          reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base);
      if (offset < opened.bytes && bytes <= opened.bytes - offset) return MemoryOrigin::opened;
    }
  }
  return std::nullopt;
}

const PooledDevice::Foreign* PooledDevice::find_adopted(const void* address) const {
  const auto after = adopted_.upper_bound(static_cast<const std::byte*>(address));
  if (after == adopted_.begin()) return nullptr;
  const Foreign& foreign = std::prev(after)->second;
  const std::uint64_t offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(foreign.base);
  return offset < foreign.bytes ? &foreign : nullptr;
}

std::optional<PooledDevice::Foreign> PooledDevice::adopted(const void* address) const {
  if (is_own(address)) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  const Foreign* found = find_adopted(address);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

bool PooledDevice::adopt(const void* address) {
  const std::optional<Foreign> found = find_foreign(address);
  const std::scoped_lock lock(mutex_);
  const Foreign* const known = find_adopted(address);
  if (known != nullptr && (!found || known->identity != found->identity)) {
    adopted_.erase(known->base);
  }
  if (!found) return false;
  // Remove entries of freed allocations that overlap this one.
  const auto end = reinterpret_cast<std::uintptr_t>(found->base) + found->bytes;
  for (auto old = adopted_.lower_bound(found->base); old != adopted_.end();) {
    const bool is_within = reinterpret_cast<std::uintptr_t>(old->first) < end;
    if (!is_within) break;
    old = old->second.identity == found->identity ? std::next(old) : adopted_.erase(old);
  }
  adopted_.try_emplace(found->base, *found);
  return true;
}

void PooledDevice::disown(const void* address) {
  const std::scoped_lock lock(mutex_);
  if (const Foreign* const known = find_adopted(address)) adopted_.erase(known->base);
}

bool PooledDevice::reaches_host(const void* address, std::size_t bytes) const {
  // Pieces of one kind do not overlap.
  const auto is_in = [&](const HostBooks& books) {
    const auto after = books.upper_bound(static_cast<const std::byte*>(address));
    if (after == books.begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    const auto offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin);
    return offset < size && bytes <= size - offset;
  };
  const std::scoped_lock lock(mutex_);
  return is_in(host_) || is_in(registered_);
}

// ---- checks of stream operations -------------------------------------------------------------

CopyEnds PooledDevice::check_copy(const Destination& to, const Source& from, const CopyShape& shape,
                                  std::uint64_t stream) const {
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: copy of {} columns of {}: {}", place(stream), shape.columns,
                            format_bytes(shape.column_bytes), reason));
  };
  const auto to_bytes = extent(shape, shape.destination_leading);
  const auto from_bytes = extent(shape, shape.source_leading);
  if (!to_bytes || !from_bytes || shape.destination_leading < shape.column_bytes ||
      shape.source_leading < shape.column_bytes) {
    refuse(fmt::format("leading dimensions {} (to) and {} (from) do not fit",
                       shape.destination_leading, shape.source_leading));
  }
  if (to.device != this && from.device != this) {
    refuse("neither end is memory of this stream's device");
  }
  const auto check_end = [&](const void* address, std::size_t bytes, const Device* device,
                             std::string_view end) {
    if (device == nullptr) {
      if (address == nullptr || is_own(address)) {
        refuse(fmt::format("the {} {} is said to be host memory, but is {}", end, fmt::ptr(address),
                           address == nullptr ? "null" : "the device's"));
      }
      return MemoryOrigin::host;
    }
    if (device != this && !can_access_peer(*device)) {
      refuse(fmt::format("no access to device {} ({}); copy through the host", device->info().index,
                         name_of(device->info().backend)));
    }
    // Peers have the same backend.
    const auto& owner = static_cast<const PooledDevice&>(*device);
    const auto origin = owner.origin_of(address, bytes);
    if (!origin) {
      refuse(
          fmt::format("the {}, {} at {}, does not lie in one allocation of {} or one mapping "
                      "that it opened",
                      end, format_bytes(bytes), fmt::ptr(address), owner.label()));
    }
    return device == this ? *origin : MemoryOrigin::peer;
  };
  const CopyEnds ends{check_end(to.address, *to_bytes, to.device, "destination"),
                      check_end(from.address, *from_bytes, from.device, "source")};
  if (to.device == nullptr || from.device == nullptr) return ends;
  const auto to_begin = reinterpret_cast<std::uintptr_t>(to.address);
  const auto from_begin = reinterpret_cast<std::uintptr_t>(from.address);
  // Blocks of several columns may interleave without overlap.
  if (shape.columns == 1 && to_begin < from_begin + *from_bytes &&
      from_begin < to_begin + *to_bytes) {
    refuse("source and destination overlap");
  }
  return ends;
}

void PooledDevice::check_tiles(const Kernel& kernel, std::span<const TileView> tiles,
                               std::uint64_t stream) const {
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const TileView& tile = tiles[i];
    if (tile.rows == 0 || tile.columns == 0) continue;
    const bool is_shaped = tile.rows > 0 && tile.columns > 0 && tile.leading >= tile.rows;
    const auto elements = static_cast<std::size_t>((tile.columns - 1) * tile.leading + tile.rows);
    if (is_shaped && origin_of(tile.data, elements * sizeof(double))) continue;
    throw Error(ErrorCode::internal,
                fmt::format("{}: tile {} of kernel '{}', {} x {} with leading dimension {} at {}, "
                            "does not lie in one allocation of the device or one mapping that it "
                            "opened",
                            place(stream), i, kernel.name, tile.rows, tile.columns, tile.leading,
                            fmt::ptr(tile.data)));
  }
}

std::string PooledDevice::refusal_of(const KernelMemory& range) const {
  if (range.device == nullptr) {
    if (reaches_host(range.address, range.bytes)) return {};
    return fmt::format(
        "does not lie in host memory that {} allocated or registered; take it from "
        "allocate_host(), or copy through such memory",
        label());
  }
  if (range.device != this && !can_access_peer(*range.device)) {
    return fmt::format("is memory of device {} ({}), which this one has no access to",
                       range.device->info().index, name_of(range.device->info().backend));
  }
  // Peers have the same backend.
  const auto& owner = static_cast<const PooledDevice&>(*range.device);
  if (owner.origin_of(range.address, range.bytes)) return {};
  return fmt::format("does not lie in one allocation of {} or one mapping that it opened",
                     owner.label());
}

void PooledDevice::check_memory(const ByteKernel& kernel, std::span<const KernelMemory> memory,
                                std::uint64_t stream) const {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const KernelMemory& range = memory[i];
    if (range.bytes == 0) continue;
    const std::string refusal = refusal_of(range);
    if (refusal.empty()) continue;
    throw Error(
        ErrorCode::internal,
        fmt::format("{}: memory {} of kernel '{}', {} at {}, {}", place(stream), i, kernel.name,
                    format_bytes(range.bytes), fmt::ptr(range.address), refusal));
  }
}

void PooledDevice::refuse_record(const Event& event, std::uint64_t stream) const {
  throw Error(ErrorCode::internal,
              fmt::format("{}: an event of device {} ({}) cannot be recorded here; a stream "
                          "records events of its own device",
                          place(stream), event.device().info().index,
                          name_of(event.device().info().backend)));
}

void PooledDevice::refuse_wait(const Event& event, std::uint64_t stream) const {
  throw Error(ErrorCode::internal,
              fmt::format("{}: cannot wait for an event of the {} backend", place(stream),
                          name_of(event.device().info().backend)));
}

// ---- other processes -------------------------------------------------------------------------

MemoryPlace PooledDevice::locate(const void* address) const {
  if (const auto foreign = adopted(address)) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - foreign->base);
    return {foreign->identity | foreign_bit, offset, foreign->bytes - offset};
  }
  std::optional<BlockAllocator::Block> block;
  {
    const std::scoped_lock lock(mutex_);
    block = block_at(address);
  }
  if (!block) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: {} is exported, but lies in no allocation of this device (memory "
                            "opened from another process must be exported by its owner)",
                            label(), fmt::ptr(address)));
  }
  const std::uint64_t within = segments_[*segment_of(address)].offset_of(address) - block->begin;
  return {block->id, within, block->bytes - within};
}

IpcMemoryHandle PooledDevice::handle_of(const void* address) const {
  const MemoryPlace place = locate(address);
  return {info_.uuid, place.allocation, place.offset, place.bytes, {}};
}

void PooledDevice::refuse_export() const {
  throw Error(ErrorCode::internal,
              fmt::format("{}: only events that it created can be exported", label()));
}

std::string PooledDevice::opening(const IpcMemoryHandle& handle) const {
  return fmt::format("{}: opening {} of device {}", label(), format_bytes(handle.bytes),
                     to_string(handle.device));
}

std::string PooledDevice::opening(const IpcEventHandle& handle) const {
  return fmt::format("{}: opening an event of device {}", label(), to_string(handle.device));
}

DeviceMemory PooledDevice::add_opened(std::byte* address, std::uint64_t bytes) {
  Opened& opened = opened_[address];
  opened.bytes = std::max(opened.bytes, bytes);
  ++opened.count;
  return {address, bytes};
}

void PooledDevice::close_memory(const DeviceMemory& memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = opened_.find(memory.address);
  if (found == opened_.end()) {
    throw Error(ErrorCode::internal,
                fmt::format("{}: memory at {} is closed, but was not opened here", label(),
                            fmt::ptr(memory.address)));
  }
  if (--found->second.count == 0) opened_.erase(found);
  unmap(memory.address);
}

}  // namespace heddle
