#include "node-runtime/transport/pack/units_store.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <iterator>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace heddle::packing {
namespace {

constexpr std::size_t chunks_min = 2;

std::size_t rounded(std::size_t bytes) {
  return (bytes + BlockAllocator::alignment - 1) / BlockAllocator::alignment *
         BlockAllocator::alignment;
}

UnitsStore::Options checked(const UnitsStore::Options& options) {
  HEDDLE_CHECK(options.chunk_units > 0 && options.chunks >= chunks_min,
               "{} chunks of {} units; there must be {} of them at least", options.chunks,
               options.chunk_units, chunks_min);
  UnitsStore::Options result = options;
  result.cache_bytes = rounded(options.cache_bytes);
  return result;
}

std::size_t chunk_bytes(const UnitsStore::Options& options) {
  return rounded(options.chunk_units * sizeof(WorkUnit));
}

bool is_pending(const std::unique_ptr<Event>& event) {
  return event->query() == EventState::pending;
}

}  // namespace

UnitsStore::UnitsStore(Device& device, const Options& options)
    : device_(device),
      options_(checked(options)),
      memory_(device, options_.cache_bytes + options_.chunks * chunk_bytes(options_)),
      host_(device, options_.chunks * chunk_bytes(options_)),
      copies_(device.create_stream()),
      allocator_(options_.cache_bytes),
      chunks_(options_.chunks) {
  std::byte* on_device = memory_.address() + options_.cache_bytes;
  std::byte* on_host = host_.address();
  for (Chunk& chunk : chunks_) {
    chunk.copied = device.create_event(EventTiming::off);
    chunk.used = device.create_event(EventTiming::off);
    chunk.device = reinterpret_cast<WorkUnit*>(on_device);
    chunk.host = reinterpret_cast<WorkUnit*>(on_host);
    on_device += chunk_bytes(options_);
    on_host += chunk_bytes(options_);
  }
}

UnitsStore::~UnitsStore() {
  // Every copy has been waited for by a stream that has ended; what may be on its way are the
  // records behind them.
  for (const Chunk& chunk : chunks_) {
    while (is_pending(chunk.copied)) std::this_thread::yield();
  }
  for (const Entry& entry : entries_) {
    while (is_pending(entry.arrived)) std::this_thread::yield();
  }
  static_cast<void>(copies_->failure());  // the streams that waited for the copies report it
}

// ---- what is kept ----------------------------------------------------------------------------

WorkUnit* UnitsStore::units_of(const Entry& entry) const {
  return reinterpret_cast<WorkUnit*>(memory_.address() + entry.offset);
}

bool UnitsStore::is_in_use(const Entry& entry) {
  // A stream that failed may have kernels that run yet: only what is done is over.
  const auto is_over = [](const std::unique_ptr<Event>& event) {
    return event->query() == EventState::done;
  };
  return !is_over(entry.arrived) ||
         !std::all_of(entry.uses.begin(), entry.uses.end(),
                      [&](const Use& use) { return is_over(use.event); });
}

/// Drops unused entries, the least recently used first, until there is a block.
bool UnitsStore::make_room(std::uint64_t bytes) {
  if (bytes > options_.cache_bytes) return false;
  for (auto entry = entries_.end(); allocator_.largest_free() < bytes;) {
    do {
      if (entry == entries_.begin()) return false;
      --entry;
    } while (is_in_use(*entry));
    HEDDLE_CHECK(allocator_.release(entry->offset));
    by_plan_.erase(entry->plan.get());
    entry = entries_.erase(entry);
    ++statistics_.dropped;
  }
  return true;
}

/// Null: there is no room for its units.
UnitsStore::Entry* UnitsStore::entry_for(const Plan& plan) {
  if (const auto found = by_plan_.find(plan.get()); found != by_plan_.end()) {
    ++statistics_.found;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &entries_.front();
  }
  const std::uint64_t bytes = plan->units.size() * sizeof(WorkUnit);
  if (!make_room(bytes)) return nullptr;
  auto arrived = device_.create_event(EventTiming::off);
  const auto block = allocator_.allocate(bytes);
  HEDDLE_CHECK(block.has_value(), "{} bytes", bytes);
  entries_.push_front({plan, block->begin, 0, false, std::move(arrived), {}});
  by_plan_.emplace(plan.get(), entries_.begin());
  ++statistics_.prepared;
  return &entries_.front();
}

void UnitsStore::record_use(Stream& stream, Entry& entry) {
  auto use = std::find_if(entry.uses.begin(), entry.uses.end(),
                          [&](const Use& known) { return known.stream == &stream; });
  if (use == entry.uses.end()) {
    use = std::find_if(entry.uses.begin(), entry.uses.end(),
                       [](const Use& known) { return known.event->query() == EventState::done; });
  }
  if (use == entry.uses.end()) {
    entry.uses.push_back({&stream, device_.create_event(EventTiming::off)});
    use = std::prev(entry.uses.end());
  }
  use->stream = &stream;
  stream.record(*use->event);
}

void UnitsStore::use_kept(Stream& stream, Entry& entry, std::int64_t first, std::int64_t end,
                          const Launch& launch) {
  try {
    if (entry.uploaded > first) {
      entry.has_arrived = entry.has_arrived || entry.arrived->query() == EventState::done;
      if (!entry.has_arrived) stream.wait(*entry.arrived);
      launch(units_of(entry) + first, first, std::min(end, entry.uploaded) - first);
    }
    while (entry.uploaded < end) upload_next(stream, entry, first, end, launch);
  } catch (...) {
    // Some kernels may be queued already.
    record_use(stream, entry);
    throw;
  }
  record_use(stream, entry);
}

/// The next chunk of the plan, and a kernel for those of its units that are in [first, end).
void UnitsStore::upload_next(Stream& stream, Entry& entry, std::int64_t first, std::int64_t end,
                             const Launch& launch) {
  const std::int64_t from = entry.uploaded;
  const auto count = std::min(static_cast<std::int64_t>(options_.chunk_units),
                              static_cast<std::int64_t>(entry.plan->units.size()) - from);
  bring(stream, next_chunk(), *entry.plan, from, count, units_of(entry) + from,
        entry.arrived.get());
  entry.has_arrived = false;
  entry.uploaded = from + count;
  const std::int64_t used_from = std::max(first, from);
  const std::int64_t used_end = std::min(end, entry.uploaded);
  if (used_from < used_end) launch(units_of(entry) + used_from, used_from, used_end - used_from);
}

// ---- what passes through ---------------------------------------------------------------------

void UnitsStore::pass_through(Stream& stream, const PackPlan& plan, std::int64_t first,
                              std::int64_t end, const Launch& launch) {
  for (std::int64_t at = first; at < end;) {
    const auto count = std::min(static_cast<std::int64_t>(options_.chunk_units), end - at);
    Chunk& chunk = next_chunk();
    bring(stream, chunk, plan, at, count, chunk.device, nullptr);
    launch(chunk.device, at, count);
    stream.record(*chunk.used);
    at += count;
  }
}

UnitsStore::Chunk& UnitsStore::next_chunk() {
  for (std::size_t tried = 0; tried < chunks_.size(); ++tried) {
    Chunk& chunk = chunks_[next_chunk_];
    next_chunk_ = (next_chunk_ + 1) % chunks_.size();
    if (chunk.is_lost) continue;
    while (is_pending(chunk.copied) || is_pending(chunk.used)) std::this_thread::yield();
    chunk.is_lost =
        chunk.copied->query() == EventState::failed || chunk.used->query() == EventState::failed;
    if (!chunk.is_lost) return chunk;
  }
  throw Error(ErrorCode::internal,
              fmt::format("device {} ({}): all chunks for work units were used by streams that "
                          "have failed",
                          device_.info().index, device_.info().name));
}

void UnitsStore::bring(Stream& stream, Chunk& chunk, const PackPlan& plan, std::int64_t first,
                       std::int64_t count, WorkUnit* to, Event* arrived) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(WorkUnit);
  std::memcpy(chunk.host, plan.units.data() + first, bytes);
  copies_->copy({to, &device_}, {chunk.host, nullptr}, bytes);
  // First: a caller that sees a kernel complete which waited for the chunk sees the units arrived.
  if (arrived != nullptr) copies_->record(*arrived);
  copies_->record(*chunk.copied);
  stream.wait(*chunk.copied);
}

// ---- interface -------------------------------------------------------------------------------

void UnitsStore::use(Stream& stream, const Plan& plan, std::int64_t first, std::int64_t end,
                     const Launch& launch) {
  const std::scoped_lock lock(mutex_);
  if (Entry* entry = entry_for(plan); entry != nullptr) {
    use_kept(stream, *entry, first, end, launch);
  } else {
    ++statistics_.passed;
    pass_through(stream, *plan, first, end, launch);
  }
  HEDDLE_EXPENSIVE(holds_invariant());
}

UnitsStore::Statistics UnitsStore::statistics() const {
  const std::scoped_lock lock(mutex_);
  return statistics_;
}

bool UnitsStore::is_valid() const {
  const std::scoped_lock lock(mutex_);
  return holds_invariant();
}

bool UnitsStore::holds_invariant() const {
  const auto is_known = [&](const Entry& entry) {
    const auto found = by_plan_.find(entry.plan.get());
    const auto block = allocator_.find(entry.offset);
    return found != by_plan_.end() && &*found->second == &entry && block.has_value() &&
           block->begin == entry.offset &&
           block->bytes == entry.plan->units.size() * sizeof(WorkUnit) &&
           entry.uploaded <= static_cast<std::int64_t>(entry.plan->units.size());
  };
  return by_plan_.size() == entries_.size() && allocator_.used_count() == entries_.size() &&
         allocator_.is_valid() && std::all_of(entries_.begin(), entries_.end(), is_known);
}

}  // namespace heddle::packing
