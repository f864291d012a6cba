#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/index.hpp"

/// Trace records: 64 bytes each, the same in memory and in a node's file. Times are now_ns() of the
/// recording node. Jobs, matrices and tiles are numbered as in the protocol; -1 where a field does
/// not apply.
namespace heddle::trace {

static_assert(std::endian::native == std::endian::little,
              "trace files are little-endian and written as they lie in memory");

/// First byte of every record. Readers skip unknown kinds.
enum class RecordKind : std::uint8_t {
  none,
  task,
  access,
  copy,
  send,
  receive,
  wait,
  counter,
  fragment,
  collective
};

/// A text stored once per node (Recorder::intern).
using NameId = Index<struct NameTag, std::uint32_t>;

/// A tile of a matrix; `index` counts tiles column by column.
struct Tile {
  std::int32_t matrix = -1;
  std::int32_t index = -1;
  friend bool operator==(const Tile&, const Tile&) = default;
};

enum class AccessMode : std::uint8_t { read, write, read_write };

/// Why a thread waited.
enum class WaitCause : std::uint8_t {
  no_task,      ///< no task was ready
  window_full,  ///< generation has reached its limit
  dependency,   ///< another task's output
  message,      ///< a message from or to another node
  copy,         ///< a copy from or to another place of the node
  other,
};
inline constexpr std::uint8_t wait_cause_count = 6;

[[nodiscard]] const char* name(WaitCause cause);
[[nodiscard]] const char* name(AccessMode mode);

/// Not recorded.
inline constexpr std::uint32_t unknown_number = 0xFFFFFFFFU;

/// A kernel run; `access_count` accesses follow, four to a record.
///
/// A task that CPU workers divided (000 section 3.2) has a record in the row `divided_row`, from
/// its division to the end of its last fine task, and one per fine task at the worker that ran it,
/// with the order of the divided task and no accesses.
struct TaskRecord {
  RecordKind kind = RecordKind::task;
  std::uint8_t access_count = 0;  ///< set by ThreadTrace::task
  std::uint8_t is_divided = 0;    ///< 1: it was divided
  std::uint8_t stream = 0;        ///< of the device that ran it, from 1; 0: none or unknown
  NameId kernel{};
  std::int32_t job = -1;
  PlaceId place{};
  std::uint64_t order = 0;  ///< position in the sequential program, as walked by this node
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  Tile tile{};  ///< the main output
  /// Fine task: number of the predecessor that finished last, from 1; 0: none.
  std::uint32_t after = unknown_number;
  std::uint32_t reserved = unknown_number;  ///< any other value: `after` is unknown
  std::int32_t priority = 0;
  std::uint32_t fine = 0;  ///< fine task: its number in the divided one, from 1
};

/// Row of the divided tasks; not a thread's, written by one thread at a time.
inline constexpr std::string_view divided_row = "divided";
inline constexpr int divided_row_order = 900;

/// An access of the preceding task. `version` is the version read, or for `write` the one replaced;
/// a write makes version + 1. So (job, tile, version) identifies the task that made a version.
struct TileAccess {
  RecordKind kind = RecordKind::access;  ///< none: unused entry
  AccessMode mode = AccessMode::read;
  std::uint16_t reserved = 0;
  Tile tile{};
  Version version{-1};
};

inline constexpr std::size_t accesses_per_record = 4;
inline constexpr std::size_t accesses_per_task_max = 255;
using AccessRecord = std::array<TileAccess, accesses_per_record>;

/// Reason of a copy between two places of the node.
enum class CopyReason : std::uint8_t {
  access,      ///< a task at the other place reads this version
  fetch,       ///< back to a device's memory, which had no room before
  write_back,  ///< a device's memory has no room, or soon will not
};
[[nodiscard]] const char* name(CopyReason reason);

/// A copy of a tile between two places of the node. Fetches and write-backs concern the device's
/// copy of the tile and have no job or version.
struct CopyRecord {
  RecordKind kind = RecordKind::copy;
  CopyReason reason = CopyReason::access;
  std::uint16_t reserved_1 = 0;
  std::int32_t job = -1;
  Tile tile{};
  Version version{-1};
  PlaceId from{};
  PlaceId to{};
  std::uint32_t reserved_2 = 0;
  std::uint64_t bytes = 0;
  std::int64_t posted_ns = 0;  ///< when it was requested
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Path of a message: 1 + p2p::Path; 0: unknown.
using PathNumber = std::uint8_t;
inline constexpr std::uint8_t path_number_count = 7;
[[nodiscard]] const char* path_name(PathNumber path);
/// A place: 1 + its number; 0: unknown.
using PlaceNumber = std::uint16_t;
[[nodiscard]] inline PlaceNumber number_of(PlaceId place) {
  return static_cast<PlaceNumber>(1 + place.value());
}

/// A version sent to (`kind` send) or received from (`kind` receive) another node.
struct MessageRecord {
  RecordKind kind = RecordKind::send;
  PathNumber path = 0;
  PlaceNumber place = 0;  ///< of this node, that it left or came to
  std::int32_t job = -1;
  Tile tile{};
  Version version{-1};
  NodeId peer{};
  std::uint32_t tag = 0;
  /// `send`: 1 if this node had received it itself and is not its home (decision 044).
  std::uint8_t is_passed_on = 0;
  std::array<std::uint8_t, 3> reserved{};
  std::uint64_t bytes = 0;
  std::int64_t posted_ns = 0;  ///< when it was requested
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Step of a fragment of a message; as p2p::FragmentReport::Kind.
enum class FragmentStep : std::uint8_t { pack, send, fill, receive, unpack, fetch };
inline constexpr std::uint8_t fragment_step_count = 6;
[[nodiscard]] const char* name(FragmentStep step);

/// A fragment at one end of a message: bytes [begin, begin + bytes) in transfer order.
struct FragmentRecord {
  RecordKind kind = RecordKind::fragment;
  FragmentStep step = FragmentStep::pack;
  std::uint16_t reserved_0 = 0;
  std::int32_t job = -1;
  Tile tile{};
  Version version{-1};
  NodeId peer{};
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t reserved_1 = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// An operation of a group of nodes (node-runtime/collectives) on this node, from its call to its
/// end. `group` and `number` name it on all members.
struct CollectiveRecord {
  RecordKind kind = RecordKind::collective;
  std::uint8_t is_on_stream = 0;  ///< 1: an operation of a device's stream
  std::uint16_t reserved_0 = 0;
  NameId operation{};
  NameId algorithm{};
  std::int32_t group = -1;
  std::int64_t number = 0;
  std::uint64_t bytes = 0;  ///< of this node's own elements
  std::int32_t ranks = 0;   ///< of the group
  std::uint32_t reserved_1 = 0;
  std::uint64_t reserved_2 = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Row of the groups' operations; not a thread's, written by one thread at a time.
inline constexpr std::string_view collectives_row = "collectives";

/// Idle time of a thread; job, tile and version name what it waited for, if that is one thing.
struct WaitRecord {
  RecordKind kind = RecordKind::wait;
  WaitCause cause = WaitCause::other;
  std::uint16_t reserved_0 = 0;
  std::int32_t job = -1;
  Tile tile{};
  Version version{-1};
  std::uint32_t reserved_1 = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::array<std::uint64_t, 3> reserved_2{};
};

/// A value that changes over time, such as the number of ready tasks of a place.
struct CounterRecord {
  RecordKind kind = RecordKind::counter;
  std::uint8_t reserved_0 = 0;
  std::uint16_t reserved_1 = 0;
  NameId name{};
  PlaceId place{};
  std::uint32_t reserved_2 = 0;
  std::int64_t time_ns = 0;
  std::int64_t value = 0;
  std::array<std::uint64_t, 4> reserved_3{};
};

inline constexpr std::size_t record_bytes = 64;

template <class T>
inline constexpr bool is_any_record =
    std::conjunction_v<std::bool_constant<sizeof(T) == record_bytes>, std::is_trivially_copyable<T>,
                       std::has_unique_object_representations<T>>;
template <class T>
concept AnyRecord = is_any_record<T>;

static_assert(AnyRecord<TaskRecord> && AnyRecord<AccessRecord> && AnyRecord<CopyRecord> &&
              AnyRecord<MessageRecord> && AnyRecord<FragmentRecord> && AnyRecord<WaitRecord> &&
              AnyRecord<CounterRecord> && AnyRecord<CollectiveRecord>);

/// A record of any kind in its stored form: one cache line.
struct alignas(record_bytes) Record {
  std::array<std::byte, record_bytes> bytes;

  [[nodiscard]] RecordKind kind() const { return static_cast<RecordKind>(bytes[0]); }

  template <AnyRecord T>
  [[nodiscard]] T as() const {
    return std::bit_cast<T>(*this);
  }
  template <AnyRecord T>
  [[nodiscard]] static Record of(const T& record) {
    return std::bit_cast<Record>(record);
  }
  friend bool operator==(const Record&, const Record&) = default;
};
static_assert(AnyRecord<Record>);

/// Number of records for a task's accesses.
[[nodiscard]] constexpr std::size_t access_records(std::size_t access_count) {
  return (access_count + accesses_per_record - 1) / accesses_per_record;
}

}  // namespace heddle::trace
