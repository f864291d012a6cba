#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/index.hpp"
#include "node-runtime/protocol/block_pool.hpp"
#include "node-runtime/protocol/links.hpp"
#include "node-runtime/protocol/types.hpp"

/// Records of the protocol. Callers see `Task`, to run it, and get the addresses of the others as
/// opaque tickets in actions; only the protocol changes them.
namespace heddle::protocol {

struct Job;
struct Task;
struct Copy;
struct LocalVersion;
struct Replica;
struct Send;
struct Sink;
struct TemporaryBlock;

/// A generated, unfinished task of this node, or minor output that it is to receive. The items of a
/// job are in program order; the window bounds their number, and the oldest may always take the
/// blocks that it needs (BlockPool).
struct Item : Links {
  enum class Kind : std::uint8_t { task, sink };
  Kind item_kind;
  Job* job = nullptr;
  std::uint64_t order = 0;  ///< position in the sequential program, as walked by this node
  Links extra_blocks;       ///< holders of extra blocks whose first user is this item

  explicit Item(Kind k) : item_kind(k) {}
};

/// An entry in the list of a copy: a delegate that waits for it. FIRE visits entries in program
/// order.
struct Instance {
  enum class Target : std::uint8_t { task, replica, send };
  Instance* next = nullptr;
  void* target = nullptr;
  Target target_kind = Target::task;
  InstanceKind kind = InstanceKind::native_input;
};

/// A copy of a version at one place, with the list of its readers and the count of their visits.
/// Freed when it is closed (gets no more readers), present, and actual == expected.
///
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
  /// Appends to the list.
  void enqueue(Instance& instance) {
    instance.next = nullptr;
    (last == nullptr ? first : last->next) = &instance;
    last = &instance;
  }
  [[nodiscard]] bool visited() const { return present && closed && actual == expected; }
  [[nodiscard]] bool is_valid() const { return actual >= 0 && actual <= expected; }
};

/// The copy of a version from which the node's other copies are made, and those of other nodes that
/// have it from here.
struct BaseCopy : Copy {
  TileId tile;
  JobId job;       ///< job of the write that made it, or that requested it
  Version number;  ///< writes to the tile since the job's start
  Replica* replicas = nullptr;
  Send* sends = nullptr;  ///< one per job and node
  using Copy::Copy;
  /// The version's number for `reader`, whose initial content is what other jobs wrote.
  [[nodiscard]] Version number_in(JobId reader) const {
    return job == reader ? number : Version{0};
  }
};

/// Version of a tile that lives on this node. VersionTable points to the newest; older ones exist
/// until visited.
struct LocalVersion : BaseCopy {
  LocalVersion* next = nullptr;      ///< the version that replaced this one
  LocalVersion* previous = nullptr;  ///< the version that this one replaced, until it is freed
  Task* writer = nullptr;            ///< the writing task, while the write needs a block, or
  Sink* sink = nullptr;              ///< the minor output that another place writes
  bool superseded = false;           ///< the next version went to another block (renaming)
  bool waits_for_block = false;      ///< the writer waits for the readers of `previous`
  bool temporary = false;            ///< its block is that of `pool_block`
  std::int32_t home_pool = BlockRef::none;  ///< pool of renaming blocks
  TemporaryBlock* pool_block = nullptr;

  LocalVersion() : BaseCopy(Kind::local) {}
};

/// A receive into a block of this node.
struct Landing {
  enum class Kind : std::uint8_t { version, sink };
  Kind landing_kind;
  std::int32_t ticket = 0;  ///< for the caller: what it calls the receive
};

/// A version of another node's tile that any number of tasks here read (D2a). It is received at the
/// place of the first; others read a replica. It comes from the tile's home, or from a node that
/// reads it earlier in the program, and may be passed on (Route).
struct RemoteVersion : BaseCopy, Landing, BlockRequest {
  NodeId from;
  bool asked = false;     ///< that node knows that there was no block
  bool offered = false;   ///< its data is present there
  OwnedLinks open{this};  ///< in Job::open_remotes until closed
  RemoteVersion()
      : BaseCopy(BaseCopy::Kind::remote),
        Landing{.landing_kind = Landing::Kind::version},
        BlockRequest(BlockRequest::Kind::landing) {}
};

/// Copy of a version at another place of the node than where it lives or arrives; one per place
/// and job.
struct Replica : Copy, BlockRequest {
  Replica* sibling = nullptr;
  BaseCopy* source = nullptr;  ///< null once the source is freed
  Job* owner_job = nullptr;
  Instance fetch;         ///< the entry in the source's list
  OwnedLinks open{this};  ///< in Job::open_replicas until closed
  Task* user = nullptr;

  Replica() : Copy(Copy::Kind::replica), BlockRequest(BlockRequest::Kind::replica) {}
};

/// Block at the task's place for a minor output of another place.
struct Scratch : BlockRequest {
  Task* task = nullptr;
  Scratch() : BlockRequest(BlockRequest::Kind::scratch) {}
};

/// Block of a version of a temporary matrix.
struct TemporaryBlock : BlockRequest {
  LocalVersion* version = nullptr;
  TemporaryBlock() : BlockRequest(BlockRequest::Kind::temporary) {}
};

/// An internode alien input (one per version and reading node) or internode source minor output: a
/// message, sent when the data is present and the receiver has granted a block. It takes no room in
/// the window: its receiver's first reader may be any number of items ahead.
struct Send {
  Job* job = nullptr;
  Send* sibling = nullptr;
  bool has_data = false;
  bool asked = false;  ///< the receiver has asked, and the offer is not sent
  bool granted = false;
  bool posted = false;
  bool done = false;
  NodeId to;
  TileId tile;
  Version number;
  std::int32_t priority = 0;
  std::uint32_t tag = 0;
  BaseCopy* source = nullptr;  ///< for an alien input
  Task* task = nullptr;        ///< for a source minor output
  std::uint8_t operand = 0;
  Instance instance;
  OwnedLinks open{this};  ///< alien input: in Job::open_sends, until its version is closed, or sent

  [[nodiscard]] InstanceKind kind() const {
    return task != nullptr ? InstanceKind::internode_source_minor_output
                           : InstanceKind::internode_alien_input;
  }
};

/// A sink minor output: a task elsewhere writes a tile that lives here.
struct Sink : Item, Landing {
  static constexpr InstanceKind kind = InstanceKind::sink_minor_output;
  NodeId from;
  LocalVersion* version = nullptr;
  Task* source = nullptr;  ///< the writing task, if on this node
  std::uint8_t operand = 0;
  Sink() : Item(Item::Kind::sink), Landing{.landing_kind = Landing::Kind::sink} {}
};

/// One access of a task that runs here.
struct Operand {
  Instance instance;
  AccessMode mode = AccessMode::read;
  InstanceKind kind = InstanceKind::native_input;
  TileId tile;
  Version version;              ///< version that is read or replaced
  Copy* in = nullptr;           ///< the copy that is read; visited when the task has finished
  LocalVersion* out = nullptr;  ///< the version that is written, if its tile lives on this node
  Scratch* scratch = nullptr;   ///< block of a minor output of another place
  union Way {                   ///< delivery of a minor output, by `kind`
    Send* send = nullptr;       ///< internode source: to the tile's node
    Sink* sink;                 ///< intranode source: to the tile's place
  } way;
  BlockRef block;      ///< the kernel's argument; valid once the task is ready
  BlockRef copy_from;  ///< if valid: copy it into `block` before the kernel runs (renaming)
};

/// A task's operands, in storage that comes with its record (record_slabs.hpp); only those in use
/// are initialised.
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

/// An owner instance: all of a task whose main output lives on this node.
struct Task : Item {
  Work work;
  std::int32_t priority = 0;
  std::int32_t missing = 0;  ///< missing inputs, blocks and output blocks
  /// Missing inputs that are available elsewhere and can be copied for this task.
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
