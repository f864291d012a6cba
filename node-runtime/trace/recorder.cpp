#include "node-runtime/trace/recorder.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace heddle::trace {

const char* name(WaitCause cause) {
  switch (cause) {
    case WaitCause::no_task:
      return "no task";
    case WaitCause::window_full:
      return "window full";
    case WaitCause::dependency:
      return "dependency";
    case WaitCause::message:
      return "message";
    case WaitCause::copy:
      return "copy";
    case WaitCause::other:
      return "other";
  }
  return "unknown";
}

const char* name(CopyReason reason) {
  switch (reason) {
    case CopyReason::access:
      return "copy";
    case CopyReason::fetch:
      return "fetch";
    case CopyReason::write_back:
      return "write back";
  }
  return "unknown";
}

const char* path_name(PathNumber path) {
  static constexpr std::array<const char*, path_number_count> names{
      "unknown", "eager", "message", "shared", "get", "put", "ring"};
  return path < names.size() ? names.at(path) : names.front();
}

const char* name(FragmentStep step) {
  static constexpr std::array<const char*, fragment_step_count> names{"pack",    "send",   "fill",
                                                                      "receive", "unpack", "fetch"};
  const auto number = static_cast<std::size_t>(step);
  return number < names.size() ? names.at(number) : "unknown";
}

const char* name(AccessMode mode) {
  switch (mode) {
    case AccessMode::read:
      return "read";
    case AccessMode::write:
      return "write";
    case AccessMode::read_write:
      return "read_write";
  }
  return "unknown";
}

ThreadTrace::ThreadTrace(Recorder& recorder, std::string name, int sort_order, bool enabled,
                         std::size_t records_max)
    : recorder_(recorder),
      name_(std::move(name)),
      sort_order_(sort_order),
      enabled_(enabled),
      room_(records_max) {}

ThreadTrace::~ThreadTrace() {
  // Acquire as in for_each_run; owner and reader have ended.
  const std::unique_ptr<Chunk> spare(spare_.load(std::memory_order_acquire));
  Chunk* chunk = first_.load(std::memory_order_acquire);
  while (chunk != nullptr) {
    const std::unique_ptr<Chunk> owned(chunk);
    chunk = chunk->next.load(std::memory_order_acquire);
  }
}

void ThreadTrace::warm_up() {
  if (!enabled_ || last_ != nullptr) return;
  if (!add_chunk(0)) return;
  constexpr std::size_t records_per_page = 4096 / record_bytes;
  for (std::size_t i = 0; i < limit_; i += records_per_page) records_[i] = Record{};
}

NameId ThreadTrace::look_up(const void* key, std::string_view text) {
  const NameId id = recorder_.intern(text);
  known_names_[slot_of(key)] = {key, id};
  return id;
}

std::unique_ptr<ThreadTrace::Chunk> ThreadTrace::empty_chunk(std::size_t count) {
  // Acquire: pairs with the reader's release of a chunk whose records it has read.
  std::unique_ptr<Chunk> chunk(spare_.exchange(nullptr, std::memory_order_acquire));
  if (chunk && chunk->size >= count) return chunk;
  // Relaxed, here and below: `room_` is only a number.
  if (chunk) room_.fetch_add(chunk->size, std::memory_order_relaxed);
  const std::size_t size = std::min(room_.load(std::memory_order_relaxed), chunk_records);
  if (size < count || size == 0) return nullptr;
  // Pages are allocated on first write.
  chunk.reset(new (std::nothrow) Chunk);
  if (!chunk) return nullptr;
  chunk->records.reset(new (std::nothrow) Record[size]);
  if (!chunk->records) return nullptr;
  chunk->size = size;
  room_.fetch_sub(size, std::memory_order_relaxed);
  return chunk;
}

bool ThreadTrace::add_chunk(std::size_t count) {
  std::unique_ptr<Chunk> chunk = empty_chunk(count);
  // No room in the capacity or in memory: tracing must not fail a run.
  if (!chunk) {
    if (count > 0) increase(dropped_, std::uint64_t{count});
    return false;
  }
  Chunk* const added = chunk.release();
  records_ = added->records.get();
  used_ = 0;
  limit_ = added->size;
  // Release: an acquire of the link sees the chunk's pointer to its records and the final count of
  // the chunk before it, which belongs to the reader from here on.
  (last_ == nullptr ? first_ : last_->next).store(added, std::memory_order_release);
  last_ = added;
  return true;
}

ThreadTotals ThreadTrace::totals() const {
  return {busy_ns_.load(std::memory_order_relaxed), waiting_ns_.load(std::memory_order_relaxed),
          tasks_.load(std::memory_order_relaxed)};
}

std::size_t ThreadTrace::recorded() const {
  std::size_t records = 0;
  for_each_run([&](std::span<const Record> run) { records += run.size(); });
  return records;
}

void ThreadTrace::for_each_run(const std::function<void(std::span<const Record>)>& use) const {
  // The acquires pair with the releases of add_chunk and publish. The link is read before the
  // count: if there is a next chunk this one was already complete, so there are no gaps.
  const Chunk* chunk = first_.load(std::memory_order_acquire);
  std::size_t begin = released_;
  while (chunk != nullptr) {
    const Chunk* const next = chunk->next.load(std::memory_order_acquire);
    const std::size_t count = chunk->count.load(std::memory_order_acquire);
    if (count > begin) use({chunk->records.get() + begin, count - begin});
    chunk = next;
    begin = 0;
  }
}

void ThreadTrace::release(std::size_t records) {
  Chunk* chunk = first_.load(std::memory_order_acquire);
  released_ += records;
  while (chunk != nullptr) {
    // As in for_each_run: with a next chunk, the count is final.
    Chunk* const next = chunk->next.load(std::memory_order_acquire);
    const std::size_t count = chunk->count.load(std::memory_order_acquire);
    if (next == nullptr || released_ < count) break;
    released_ -= count;
    // Relaxed: the owner sets it only while there is no chunk; no other thread reads it.
    first_.store(next, std::memory_order_relaxed);
    std::unique_ptr<Chunk> empty(std::exchange(chunk, next));
    empty->count.store(0, std::memory_order_relaxed);
    empty->next.store(nullptr, std::memory_order_relaxed);
    // Release: the owner reuses the chunk only after all of it was read. Acquire: takes back an
    // earlier spare chunk.
    empty.reset(spare_.exchange(empty.release(), std::memory_order_acq_rel));
    if (empty) room_.fetch_add(empty->size, std::memory_order_relaxed);
  }
  HEDDLE_CHECK(records == 0 || (chunk != nullptr && released_ <= chunk->count.load()),
               "{} records released, more than there are", records);
}

ThreadTrace& Recorder::thread(std::string name, int sort_order) {
  auto added = std::make_unique<ThreadTrace>(*this, std::move(name), sort_order, options_.enabled,
                                             options_.records_per_thread_max);
  const std::lock_guard lock(mutex_);
  return *threads_.emplace_back(std::move(added));
}

NameId Recorder::intern(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto [entry, added] =
      ids_.try_emplace(std::string(text), NameId(static_cast<std::uint32_t>(names_.size())));
  if (added) names_.emplace_back(text);
  return entry->second;
}

void Recorder::describe_matrix(MatrixDescription description) {
  HEDDLE_CHECK(
      description.matrix >= 0 && description.tile_rows >= 0 && description.tile_columns >= 0,
      "matrix {}, {} x {} tiles", description.matrix, description.tile_rows,
      description.tile_columns);
  const std::lock_guard lock(mutex_);
  matrices_.insert_or_assign(description.matrix, std::move(description));
}

std::vector<const ThreadTrace*> Recorder::threads() const {
  const std::lock_guard lock(mutex_);
  std::vector<const ThreadTrace*> all;
  all.reserve(threads_.size());
  for (const auto& thread : threads_) all.push_back(thread.get());
  return all;
}

std::vector<ThreadTrace*> Recorder::threads() {
  const std::lock_guard lock(mutex_);
  std::vector<ThreadTrace*> all;
  all.reserve(threads_.size());
  for (const auto& thread : threads_) all.push_back(thread.get());
  return all;
}

std::vector<std::string> Recorder::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

std::vector<MatrixDescription> Recorder::matrices() const {
  const std::lock_guard lock(mutex_);
  std::vector<MatrixDescription> all;
  all.reserve(matrices_.size());
  for (const auto& [number, description] : matrices_) all.push_back(description);
  std::ranges::sort(all, {}, &MatrixDescription::matrix);
  return all;
}

std::uint64_t Recorder::dropped() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& thread : threads_) sum += thread->dropped();
  return sum;
}

}  // namespace heddle::trace
