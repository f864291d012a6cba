#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/assert.hpp"
#include "base/index.hpp"
#include "node-runtime/trace/clock.hpp"
#include "node-runtime/trace/record.hpp"

namespace heddle::trace {

class Recorder;

/// Totals of a thread; kept whether tracing is on or off.
struct ThreadTotals {
  std::int64_t busy_ns = 0;
  std::int64_t waiting_ns = 0;
  std::uint64_t tasks = 0;
  friend bool operator==(const ThreadTotals&, const ThreadTotals&) = default;
};

/// Recording end of one thread, or of a device stream as its manager sees it.
///
/// The recording functions belong to one thread at a time, the owner; they take no lock and
/// allocate only when a chunk of `chunk_records` is full. Without room, records are dropped and
/// counted while totals continue; release() frees room. With tracing off, calls only update totals.
/// totals() and dropped(): any thread at any time. recorded(), for_each_run() and release(): one
/// thread at a time, the reader, at any time.
class ThreadTrace {
 public:
  /// 1 MiB, allocated as needed.
  static constexpr std::size_t chunk_records = 16384;

  ThreadTrace(Recorder& recorder, std::string name, int sort_order, bool enabled,
              std::size_t records_max);
  ThreadTrace(const ThreadTrace&) = delete;
  ThreadTrace& operator=(const ThreadTrace&) = delete;
  ~ThreadTrace();

  [[nodiscard]] bool enabled() const { return enabled_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int sort_order() const { return sort_order_; }

  /// Allocates the first chunk and touches its pages, to keep that out of the first records.
  /// Optional; the thread calls it before its loop, so that the memory is local to it.
  void warm_up();

  /// The id of a kernel's name. `key` (the kernel's address) identifies the name for the recorder's
  /// lifetime; only a thread's first call with a key takes the recorder's lock.
  [[nodiscard]] NameId kernel_name(const void* key, std::string_view text) {
    if (!enabled_) return NameId{};
    const KnownName& known = known_names_[slot_of(key)];
    return known.key == key ? known.id : look_up(key, text);
  }

  /// A task that ran; `access_at(i)` returns access i < access_count <= accesses_per_task_max and
  /// is called only with tracing on.
  template <class AccessAt>
  void task(TaskRecord record, std::size_t access_count, const AccessAt& access_at) {
    increase(busy_ns_, record.end_ns - record.start_ns);
    increase(tasks_, std::uint64_t{1});
    if (!enabled_) return;
    HEDDLE_CHECK(access_count <= accesses_per_task_max, "{} accesses", access_count);
    Record* to = claim(1 + access_records(access_count));
    if (to == nullptr) return;
    record.access_count = static_cast<std::uint8_t>(access_count);
    *to = Record::of(record);
    for (std::size_t first = 0; first < access_count; first += accesses_per_record) {
      AccessRecord group;
      for (std::size_t i = 0; i < accesses_per_record; ++i) {
        if (first + i < access_count) {
          group[i] = access_at(first + i);
        } else {
          group[i].kind = RecordKind::none;
        }
      }
      *++to = Record::of(group);
    }
    publish();
  }
  void task(const TaskRecord& record, std::span<const TileAccess> accesses) {
    task(record, accesses.size(), [&](std::size_t i) { return accesses[i]; });
  }

  void copy(const CopyRecord& record) { put(record); }
  /// `record.kind`: send or receive.
  void message(const MessageRecord& record) { put(record); }
  void fragment(const FragmentRecord& record) { put(record); }
  void collective(const CollectiveRecord& record) { put(record); }
  void wait(const WaitRecord& record) {
    increase(waiting_ns_, record.end_ns - record.start_ns);
    put(record);
  }
  void wait(WaitCause cause, std::int64_t start_ns, std::int64_t end_ns) {
    wait({.cause = cause, .start_ns = start_ns, .end_ns = end_ns});
  }
  void counter(NameId name, PlaceId place, std::int64_t time_ns, std::int64_t value) {
    put(CounterRecord{.name = name, .place = place, .time_ns = time_ns, .value = value});
  }
  /// Busy time outside tasks, only for the totals.
  void add_busy(std::int64_t ns) { increase(busy_ns_, ns); }

  /// Exact after the thread's work has ended; may lag before.
  [[nodiscard]] ThreadTotals totals() const;
  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  /// Number of complete, unreleased records.
  [[nodiscard]] std::size_t recorded() const;

  /// Passes all complete records in order, in pieces; a task and its accesses are in one piece.
  /// Pieces stay valid and unchanged until released.
  void for_each_run(const std::function<void(std::span<const Record>)>& use) const;

  /// Frees the first `records` of those passed by for_each_run(); their room returns to the owner.
  void release(std::size_t records);

 private:
  /// `records[0, count)` are complete and immutable. The owner writes to the last chunk; a chunk
  /// with a successor belongs to the reader.
  struct Chunk {
    std::unique_ptr<Record[]> records;
    std::size_t size = 0;
    std::atomic<std::size_t> count{0};
    std::atomic<Chunk*> next{nullptr};
  };
  struct KnownName {
    const void* key = nullptr;
    NameId id{};
  };
  static constexpr std::size_t known_names_max = 64;

  /// Relaxed and not a read-modify-write: only the owner writes, and totals publish no other data.
  template <class T>
  static void increase(std::atomic<T>& total, T by) {
    total.store(total.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  static std::size_t slot_of(const void* key) {
    // Kernels are static constants about 50 bytes apart: the low bits carry no information.
    return std::hash<const void*>{}(key) / 16 % known_names_max;
  }
  NameId look_up(const void* key, std::string_view text);

  template <AnyRecord T>
  void put(const T& record) {
    if (!enabled_) return;
    Record* to = claim(1);
    if (to == nullptr) return;
    *to = Record::of(record);
    publish();
  }

  /// Room for `count` consecutive records; null if they are to be dropped.
  Record* claim(std::size_t count) {
    if (count > limit_ - used_) [[unlikely]] {
      if (!add_chunk(count)) return nullptr;
    }
    Record* const to = records_ + used_;
    used_ += count;
    return to;
  }
  /// Release: an acquire of the count (for_each_run) sees the records below it. A plain store on
  /// x86.
  void publish() { last_->count.store(used_, std::memory_order_release); }

  bool add_chunk(std::size_t count);
  [[nodiscard]] std::unique_ptr<Chunk> empty_chunk(std::size_t count);

  Recorder& recorder_;
  const std::string name_;
  const int sort_order_;
  const bool enabled_;

  // Owner only. Invariant: used_ <= limit_ <= records of `last_`.
  Record* records_ = nullptr;  ///< of `last_`
  std::size_t used_ = 0;
  std::size_t limit_ = 0;
  Chunk* last_ = nullptr;
  std::array<KnownName, known_names_max> known_names_{};

  // Reader only.
  std::size_t released_ = 0;  ///< records of `first_`

  /// Set by the owner if null, afterwards by the reader.
  std::atomic<Chunk*> first_{nullptr};
  /// A chunk that the reader has emptied; the owner prefers it, since its pages are present.
  std::atomic<Chunk*> spare_{nullptr};
  /// Records left for further chunks; the owner takes from it, the reader returns to it.
  std::atomic<std::size_t> room_;

  // Written by the owner, read by any thread.
  std::atomic<std::int64_t> busy_ns_{0};
  std::atomic<std::int64_t> waiting_ns_{0};
  std::atomic<std::uint64_t> tasks_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

/// Name and tiling of a matrix, so that tiles are shown as (row, column).
struct MatrixDescription {
  std::int32_t matrix = -1;
  std::string name;
  std::int32_t tile_rows = 0;  ///< tile index = row + column * tile_rows
  std::int32_t tile_columns = 0;
  friend bool operator==(const MatrixDescription&, const MatrixDescription&) = default;
};

struct RecorderOptions {
  /// 64 MiB of records per thread at most.
  static constexpr std::size_t records_per_thread_default = std::size_t{1} << 20;

  NodeId node{};
  std::int32_t node_count = 1;
  bool enabled = false;
  std::size_t records_per_thread_max = records_per_thread_default;
};

/// The trace of one node: owns the ThreadTrace of each runtime thread. Thread: any.
class Recorder {
 public:
  explicit Recorder(const RecorderOptions& options) : options_(options) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() = default;

  [[nodiscard]] const RecorderOptions& options() const { return options_; }
  [[nodiscard]] bool enabled() const { return options_.enabled; }

  /// Adds a row. Rows are shown by `sort_order`, then by creation.
  [[nodiscard]] ThreadTrace& thread(std::string name, int sort_order);

  /// The id of `text`; equal texts have equal ids.
  [[nodiscard]] NameId intern(std::string_view text);

  /// Call it when a matrix is created; replaces an earlier description of that number.
  void describe_matrix(MatrixDescription description);

  /// In order of creation.
  [[nodiscard]] std::vector<const ThreadTrace*> threads() const;
  [[nodiscard]] std::vector<ThreadTrace*> threads();
  [[nodiscard]] std::vector<std::string> names() const;
  /// By number.
  [[nodiscard]] std::vector<MatrixDescription> matrices() const;
  /// Dropped records of all threads.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  const RecorderOptions options_;
  mutable std::mutex mutex_;  ///< protects all members below; never taken by recording
  std::vector<std::unique_ptr<ThreadTrace>> threads_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> ids_;
  std::unordered_map<std::int32_t, MatrixDescription> matrices_;
};

}  // namespace heddle::trace
