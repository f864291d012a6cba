#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "node-runtime/protocol/types.hpp"

/// The records that the protocol keeps. Callers see `Task` (to run it) and the addresses of the
/// others as opaque tickets inside actions; only the protocol changes them.
namespace heddle::protocol {

struct Job;
struct Task;
struct Copy;
struct LocalVersion;
struct Replica;
struct Send;
struct Pool;

/// Doubly linked, circular, intrusive; a node linked to itself is in no list.
struct Links {
  Links* previous = this;
  Links* next = this;

  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  Links(Links&&) = delete;
  Links& operator=(Links&&) = delete;
  ~Links() = default;

  [[nodiscard]] bool linked() const { return next != this; }
  void unlink() {
    previous->next = next;
    next->previous = previous;
    previous = next = this;
  }
  void insert_before(Links& position) {
    previous = position.previous;
    next = &position;
    previous->next = this;
    position.previous = this;
  }
  /// Moves all members of the list headed by `other` to the end of the list headed by this.
  void take_all(Links& other) {
    if (!other.linked()) return;
    other.next->previous = previous;
    previous->next = other.next;
    other.previous->next = this;
    previous = other.previous;
    other.previous = other.next = &other;
  }
};

/// Links that know the record they are part of.
struct OwnedLinks : Links {
  void* owner;
  explicit OwnedLinks(void* o) : owner(o) {}
};

/// Something generated and not finished on this node: a task, a version to send, a minor output to
/// receive. Items of a job are kept in the order of the sequential program; the window bounds their
/// number, and the oldest one may always take the memory it needs (see Pool).
struct Item : Links {
  enum class Kind : std::uint8_t { task, send, sink };
  Kind item_kind;
  Job* job = nullptr;
  std::uint64_t order = 0;  ///< position in the sequential program, as walked by this node
  Links slots;              ///< slots granted ahead of need whose first user is this item

  explicit Item(Kind k) : item_kind(k) {}
};

/// Whoever keeps, or waits for, a block of a job's pool.
struct SlotHolder : Links {
  enum class Kind : std::uint8_t { replica, landing, scratch, temporary };
  enum class State : std::uint8_t { idle, waiting, held };
  Kind kind;
  State state = State::idle;
  bool extra = false;    ///< granted ahead of need, counted in Pool::extra
  bool fetched = false;  ///< its reader lacks nothing but what is at hand elsewhere
  Pool* pool = nullptr;
  Job* pool_job = nullptr;
  Item* first_user = nullptr;  ///< valid while waiting
  std::uint64_t user_order = 0;
  std::uint64_t request = 0;  ///< which one of its pool; among those of one item the first is first
  BlockRef slot;

  explicit SlotHolder(Kind k) : kind(k) {}
  /// How soon what asks for a block can use it.
  enum class Use : std::uint8_t {
    write,  ///< at once: a task whose inputs are there writes to it
    fetch,  ///< its data is at hand elsewhere, and so is all else that its reader needs
    copy,   ///< its data is at hand on this node, its reader lacks other things
    grant,  ///< when the data comes, which nobody may have begun to compute
  };
  static constexpr std::size_t use_count = 4;
  [[nodiscard]] Use use() const {
    if (fetched) return Use::fetch;
    if (kind == Kind::landing) return Use::grant;
    return kind == Kind::replica ? Use::copy : Use::write;
  }
};

/// The blocks that one job may use at one place for copies of versions (replicas, arrivals,
/// temporaries, scratch).
///
/// `minimum` is the largest number of blocks alive at any one point of the sequential program
/// (pool_plan.hpp). A holder whose first user is not the oldest unfinished item of its job is
/// *extra*: at most capacity - minimum blocks are extra. So whatever the oldest item needs is
/// there: blocks in use by items up to the oldest are at most `minimum`, extra ones at most
/// capacity - minimum, and of these the requested one is not yet granted; one is free. The globally
/// oldest item therefore always advances, on every node, which is why a full pool delays but never
/// deadlocks.
///
/// Invariant: free + held == capacity, 0 <= extra <= max(0, capacity - minimum).
struct Pool {
  PlaceId place;
  std::int32_t id = BlockRef::none;
  std::int32_t capacity = 0;
  std::int32_t minimum = 0;
  std::int32_t extra = 0;
  std::int32_t peak = 0;
  std::vector<std::int32_t> free;
  std::uint64_t requests = 0;  ///< so far
  /// By program order of the first user, then by request.
  struct IsSooner {
    bool operator()(const SlotHolder* a, const SlotHolder* b) const {
      return std::pair(a->user_order, a->request) < std::pair(b->user_order, b->request);
    }
  };
  using Waiting = std::set<SlotHolder*, IsSooner>;
  std::array<Waiting, SlotHolder::use_count> waiting;
  std::array<bool, SlotHolder::use_count> is_used{};  ///< whether there are holders of that use

  /// Most extra blocks when a holder of that use is to have one more. Each use leaves a quarter to
  /// each one that is sooner over, where there is such: what is asked for earlier, for tasks that
  /// lie far ahead, would hold the blocks that those before them need.
  [[nodiscard]] std::int32_t extra_max(SlotHolder::Use use) const {
    const std::int32_t all = capacity - minimum;
    const auto sooner = std::count(is_used.begin(), is_used.begin() + static_cast<int>(use), true);
    return all - static_cast<std::int32_t>(sooner) * (all / 4);
  }

  /// Somebody waits to take a block before it is needed.
  [[nodiscard]] bool has_early() const {
    return !waiting[static_cast<std::size_t>(SlotHolder::Use::copy)].empty() ||
           !waiting[static_cast<std::size_t>(SlotHolder::Use::grant)].empty();
  }

  [[nodiscard]] bool is_valid() const {
    return extra >= 0 && extra <= (capacity > minimum ? capacity - minimum : 0) &&
           std::cmp_less_equal(free.size(), capacity);
  }
};

/// A delegate in the list of a copy: who waits for it. FIRE walks these in program order.
struct Instance {
  enum class Target : std::uint8_t { task, replica, send };
  Instance* next = nullptr;
  void* target = nullptr;
  Target target_kind = Target::task;
  InstanceKind kind = InstanceKind::native_input;
};

/// One copy of one version at one place, with the list of its readers and the count of their
/// visits.
///
/// It may be freed when it is closed (no reader will be added), present, and actual == expected.
/// Invariant: 0 <= actual <= expected.
struct Copy {
  enum class Kind : std::uint8_t { local, remote, replica };
  Kind kind;
  bool present = false;
  bool closed = false;
  PlaceId place;
  std::int32_t expected = 0;
  std::int32_t actual = 0;
  Instance* first = nullptr;
  Instance* last = nullptr;
  BlockRef block;

  explicit Copy(Kind k) : kind(k) {}
  [[nodiscard]] bool visited() const { return present && closed && actual == expected; }
  [[nodiscard]] bool is_valid() const { return actual >= 0 && actual <= expected; }
};

/// The copy of a version that others on the node are copied from.
struct BaseCopy : Copy {
  TileId tile;
  JobId job;       ///< the job of the write that made it, or that asked for it
  Version number;  ///< writes to the tile since that job began
  Replica* replicas = nullptr;
  using Copy::Copy;
};

/// Version of a tile that lives on this node. The newest one of each tile is kept in the tile's
/// record; older ones until they are visited.
struct LocalVersion : BaseCopy {
  LocalVersion* next = nullptr;      ///< the version that replaces this one
  LocalVersion* previous = nullptr;  ///< the one this replaces, until that is freed
  Task* writer = nullptr;            ///< set while the write needs a block: the task, or
  struct Sink* sink = nullptr;       ///< the minor output that arrives from elsewhere
  bool superseded = false;           ///< the next version went to another block (renaming)
  bool waits_for_block = false;      ///< its writer waits until the readers of `previous` are gone
  bool temporary = false;            ///< its block is `slot`'s
  std::int32_t home_pool = BlockRef::none;  ///< where renaming finds and leaves blocks
  Send* sends = nullptr;                    ///< one per node that reads it
  SlotHolder* slot = nullptr;

  LocalVersion() : BaseCopy(Kind::local) {}
};

/// What arrives from another node into a block of this one.
struct Landing {
  enum class Kind : std::uint8_t { version, sink };
  Kind landing_kind;
};

/// Arrival record: a version that lives on another node and is read here, by whatever number of
/// tasks (D2a). It lands at the place of the first of them; others have it copied from there.
struct RemoteVersion : BaseCopy, Landing, SlotHolder {
  NodeId from;
  bool asked = false;     ///< it has been told that there was no block
  bool offered = false;   ///< its data is at hand there
  OwnedLinks open{this};  ///< in Job::open_remotes until closed
  RemoteVersion()
      : BaseCopy(BaseCopy::Kind::remote),
        Landing{Landing::Kind::version},
        SlotHolder(SlotHolder::Kind::landing) {}
};

/// Copy of a version at another place of the node than where it lives or landed; one per place and
/// job.
struct Replica : Copy, SlotHolder {
  Replica* sibling = nullptr;
  BaseCopy* source = nullptr;  ///< null once the source is freed
  Job* owner_job = nullptr;
  Instance fetch;         ///< the delegate in the source's list
  OwnedLinks open{this};  ///< in Job::open_replicas until closed
  Task* user = nullptr;

  Replica() : Copy(Copy::Kind::replica), SlotHolder(SlotHolder::Kind::replica) {}
};

/// Block at the task's place for a minor output that lives elsewhere.
struct Scratch : SlotHolder {
  Task* task = nullptr;
  Scratch() : SlotHolder(SlotHolder::Kind::scratch) {}
};

/// Block of a version of a temporary matrix.
struct TemporarySlot : SlotHolder {
  LocalVersion* version = nullptr;
  TemporarySlot() : SlotHolder(SlotHolder::Kind::temporary) {}
};

/// An internode alien input (one per version and reading node) or internode source minor output: a
/// message to be sent once the data is at hand and the receiver has granted a block.
struct Send : Item {
  Send* sibling = nullptr;
  InstanceKind kind = InstanceKind::internode_alien_input;
  bool has_data = false;
  bool asked = false;  ///< and not yet offered
  bool granted = false;
  bool posted = false;
  bool done = false;
  NodeId to;
  TileId tile;
  Version number;
  std::int32_t priority = 0;
  std::uint32_t tag = 0;
  LocalVersion* version = nullptr;  ///< of an alien input
  Task* task = nullptr;             ///< of a source minor output
  std::uint8_t operand = 0;
  Instance instance;
  OwnedLinks open{this};  ///< in Job::open_sends until its version is closed or the program ends

  Send() : Item(Item::Kind::send) {}
};

/// A sink minor output: the write of a task elsewhere to a tile that lives here.
struct Sink : Item, Landing {
  NodeId from;
  LocalVersion* version = nullptr;
  Task* source = nullptr;  ///< writing task, when it is on this node
  std::uint8_t operand = 0;
  Sink() : Item(Item::Kind::sink), Landing{Landing::Kind::sink} {}
};

/// One access of a task that runs here.
struct Operand {
  Instance instance;
  AccessMode mode = AccessMode::read;
  InstanceKind kind = InstanceKind::native_input;
  TileId tile;
  Version version;  ///< that is read, or replaced
  Copy* in =
      nullptr;  ///< the copy that is read (and counted as visited when the task has finished)
  LocalVersion* out = nullptr;  ///< the version that is written, when its tile lives on this node
  Scratch* scratch = nullptr;   ///< where a minor output that lives elsewhere is written
  union Way {                   ///< how a minor output leaves, by `kind`
    Send* send = nullptr;       ///< internode source: to the node where its tile lives
    Sink* sink;                 ///< intranode source: to its place
  } way;
  BlockRef block;      ///< what the kernel is given; valid once the task is ready
  BlockRef copy_from;  ///< if valid: copy this block into `block` before the kernel runs (renaming)
};

/// The operands of a task, in room that comes with its record (task_records.hpp); only those in use
/// are ever initialised.
class Operands {
 public:
  Operands() = default;
  explicit Operands(std::byte* room) : room_(room) {}

  Operand& emplace(std::uint8_t index) {
    return *::new (static_cast<void*>(room_ + index * sizeof(Operand))) Operand;
  }
  Operand& operator[](std::size_t index) {
    return *std::launder(reinterpret_cast<Operand*>(room_ + index * sizeof(Operand)));
  }
  const Operand& operator[](std::size_t index) const {
    return *std::launder(reinterpret_cast<const Operand*>(room_ + index * sizeof(Operand)));
  }

 private:
  std::byte* room_ = nullptr;
};

/// An owner instance: the complete information of a task whose main output lives on this node.
struct Task : Item {
  Work work;
  std::int32_t priority = 0;
  std::int32_t missing = 0;  ///< inputs, blocks and output blocks not yet there
  /// Of the inputs that are missing: those at hand elsewhere that are to be brought for this task.
  std::int32_t offered = 0;
  PlaceId place;
  std::uint8_t operand_count = 0;
  std::uint8_t pending_outputs = 0;  ///< minor outputs not yet delivered
  bool outputs_acquired = false;
  bool executed = false;
  bool is_lent = false;  ///< for the scheduler: the host runs it instead of its place's device
  Task* queue_next = nullptr;  ///< for the scheduler: the next one in a ready queue
  Operands operands;

  Task() : Item(Item::Kind::task) {}
  [[nodiscard]] PlaceId runs_at() const { return is_lent ? host_place : place; }
};

}  // namespace heddle::protocol
