#include "node-runtime/protocol/protocol.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "base/assert.hpp"

namespace heddle::protocol {

const char* name(InstanceKind kind) {
  switch (kind) {
    case InstanceKind::owner:
      return "owner";
    case InstanceKind::native_input:
      return "native input";
    case InstanceKind::intranode_alien_input:
      return "intranode alien input";
    case InstanceKind::internode_alien_input:
      return "internode alien input";
    case InstanceKind::native_minor_output:
      return "native minor output";
    case InstanceKind::sink_minor_output:
      return "sink minor output";
    case InstanceKind::intranode_source_minor_output:
      return "intranode source minor output";
    case InstanceKind::internode_source_minor_output:
      return "internode source minor output";
  }
  return "unknown";
}

std::size_t Protocol::MessageKeyHash::operator()(const MessageKey& k) const {
  std::uint64_t h = static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.tile.index)) |
                    static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.number.value())) << 32;
  h *= 0x9E3779B97F4A7C15ULL;
  h ^= static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.peer.value())) |
       static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.job.value())) << 32;
  h ^= static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.tile.matrix.value())) << 20;
  h *= 0xD6E8FEB86659FD93ULL;
  return static_cast<std::size_t>(h ^ (h >> 32));
}

Protocol::Protocol(Options options) : options_(options) {
  HEDDLE_CHECK(options.places >= 1, "{} places", options.places);
}

Protocol::~Protocol() {
  for (const auto& job : jobs_) {
    HEDDLE_CHECK(job->drained, "job {} is destroyed with {} unfinished items", job->id.value(),
                 job->unfinished);
  }
  for (std::size_t m = 0; m < matrices_.size(); ++m) {
    if (matrices_[m]->in_use) remove_matrix(MatrixId{static_cast<std::int32_t>(m)});
  }
  HEDDLE_CHECK(remotes_.empty(), "{} arrival records are left", remotes_.size());
  sends_.for_each([](const MessageKey& key, const PendingGrant& pending) {
    HEDDLE_CHECK(pending.sent, "tile {} version {} was granted by node {} and never sent",
                 key.tile.index, key.number.value(), key.peer.value());
  });
}

MatrixId Protocol::add_matrix(MatrixOptions options) {
  HEDDLE_CHECK(options.tile_count >= 0 && options.spare_count >= 0 && options.class_count >= 1);
  HEDDLE_CHECK(!options.classes || std::cmp_equal(options.classes->size(), options.tile_count));
  HEDDLE_CHECK(options.temporary || std::cmp_equal(options.pools.size(), options_.places));
  auto matrix = std::make_unique<Matrix>();
  const auto tile_count = static_cast<std::size_t>(options.tile_count);
  matrix->tiles = PagedArray<TileState>(tile_count);
  matrix->remote_writes = PagedArray<RemoteWrites>(tile_count);
  for (std::int32_t p = 0; p < options_.places; ++p) {
    for (std::int32_t k = 0; k < options.class_count; ++k) {
      const std::int32_t first = options.tile_count + k * options.spare_count;
      auto& spares = matrix->spares.emplace_back();
      for (std::int32_t i = options.spare_count; i-- > 0;) spares.push_back(first + i);
    }
  }
  matrix->options = std::move(options);
  matrices_.push_back(std::move(matrix));
  return MatrixId{static_cast<std::int32_t>(matrices_.size()) - 1};
}

void Protocol::remove_matrix(MatrixId id) {
  Matrix& matrix = *matrices_[static_cast<std::size_t>(id.value())];
  matrix.tiles.for_each_touched([&](TileState& tile) {
    if (tile.current == nullptr) return;
    HEDDLE_CHECK(tile.current->sends == nullptr, "matrix {} is removed while a job sends of it",
                 id.value());
    HEDDLE_CHECK(tile.current->present && tile.current->actual == tile.current->expected &&
                     !matrix.options.temporary,
                 "matrix {} is removed while a task uses it", id.value());
    HEDDLE_CHECK(tile.current->previous == nullptr,
                 "version {} of tile {} is left: {} visits of {}",
                 tile.current->previous->number.value(), tile.current->tile.index,
                 tile.current->previous->actual, tile.current->previous->expected);
    destroy_local(*tile.current);
  });
  matrix.tiles.clear();
  matrix.remote_writes.clear();
  matrix.in_use = false;
}

Job& Protocol::begin_job(const JobOptions& options) {
  HEDDLE_CHECK(options.window >= 1, "window {}", options.window);
  HEDDLE_CHECK(std::cmp_equal(options.pools.size(), options_.places));
  auto job = std::make_unique<Job>();
  job->id = next_job_;
  ++next_job_;
  job->window = options.window;
  job->pools.resize(options.pools.size());
  for (std::size_t p = 0; p < options.pools.size(); ++p) {
    const PoolOptions& from = options.pools[p];
    HEDDLE_CHECK(from.capacity >= from.minimum && from.minimum >= 0, "place {}: {} blocks of {}", p,
                 from.capacity, from.minimum);
    Pool& pool = job->pools[p];
    pool.place = PlaceId{static_cast<std::int32_t>(p)};
    pool.id = from.id;
    pool.capacity = from.capacity;
    pool.minimum = from.minimum;
    pool.free.reserve(static_cast<std::size_t>(from.capacity));
    for (std::int32_t i = from.capacity; i-- > 0;) pool.free.push_back(i);
  }
  jobs_.push_back(std::move(job));
  return *jobs_.back();
}

void Protocol::forget(Job& job) {
  HEDDLE_CHECK(job.drained, "job {} is not drained", job.id.value());
  std::erase_if(jobs_, [&](const auto& j) { return j.get() == &job; });
}

Job* Protocol::find_job(JobId id) {
  for (const auto& job : jobs_) {
    if (job->id == id) return job.get();
  }
  return nullptr;
}

BlockRef Protocol::current_block(TileId id, PlaceId place) const {
  const Matrix& matrix = *matrices_[static_cast<std::size_t>(id.matrix.value())];
  const TileState& tile = std::as_const(matrix.tiles)[static_cast<std::size_t>(id.index)];
  if (tile.current != nullptr) return tile.current->block;
  return {matrix.options.pools[static_cast<std::size_t>(place.value())], id.index};
}

std::size_t Protocol::bytes() const {
  return tasks_.bytes() + versions_.bytes() + remote_versions_.bytes() + replicas_.bytes() +
         scratches_.bytes() + temporaries_.bytes() + send_records_.bytes() + sink_records_.bytes();
}

std::size_t Protocol::records_in_use() const {
  return tasks_.in_use() + remote_versions_.in_use() + replicas_.in_use() + scratches_.in_use() +
         temporaries_.in_use() + send_records_.in_use() + sink_records_.in_use();
}

void Protocol::abandon() {
  for (const auto& job : jobs_) {
    job->drained = true;
  }
  sends_.clear();
  remotes_.clear();
  for (const auto& matrix : matrices_) {
    matrix->tiles.clear();
    matrix->in_use = false;
  }
  tasks_.abandon();
  versions_.abandon();
  remote_versions_.abandon();
  replicas_.abandon();
  scratches_.abandon();
  temporaries_.abandon();
  send_records_.abandon();
  sink_records_.abandon();
}

Blockage Protocol::blockage() const {
  Blockage blockage;
  for (const auto& job : jobs_) {
    if (!job->items.linked()) {
      if (job->drained) continue;
      blockage.text += fmt::format("job {}: nothing unfinished of {} tasks, its program {}; ",
                                   job->id.value(), job->counters.tasks,
                                   job->generation_ended ? "has ended" : "is not walked further");
      continue;
    }
    const Item& item = *static_cast<const Item*>(job->items.next);
    blockage.any = true;
    blockage.order = item.order;
    blockage.text += fmt::format("job {}: {} unfinished, the oldest is number {} of its program",
                                 job->id.value(), job->unfinished, item.order);
    describe(item, blockage.text);
    for (const Pool& pool : job->pools) {
      std::size_t waiting = 0;
      for (const Pool::Waiting& holders : pool.waiting) waiting += holders.size();
      if (waiting > 0) {
        blockage.text += fmt::format("; {} wait for a block of place {} ({} of {} free)", waiting,
                                     pool.place.value(), pool.free.size(), pool.capacity);
      }
    }
    return blockage;
  }
  return blockage;
}

namespace {

std::string tile_name(TileId tile, Version number) {
  return fmt::format("tile {} of matrix {} version {}", tile.index, tile.matrix.value(),
                     number.value());
}

std::string state_of(const Copy* copy) {
  if (copy == nullptr) return "none";
  if (copy->present) return "there";
  if (copy->kind == Copy::Kind::replica) {
    const auto& replica = static_cast<const Replica&>(*copy);
    return replica.state == SlotHolder::State::held      ? "being copied"
           : replica.state == SlotHolder::State::waiting ? "no block to copy it to"
                                                         : "to be copied once it is there";
  }
  if (copy->kind == Copy::Kind::remote) {
    const auto& version = static_cast<const RemoteVersion&>(*copy);
    return fmt::format(
        "expected from node {}, {}", version.from.value(),
        version.state == SlotHolder::State::held ? "granted" : "no block to receive it");
  }
  return "not written yet";
}

}  // namespace

void Protocol::describe(const Item& item, std::string& text) const {
  switch (item.item_kind) {
    case Item::Kind::task: {
      const auto& task = static_cast<const Task&>(item);
      text += fmt::format(", a task at place {} that {}", task.place.value(),
                          task.executed       ? "has run and waits for its minor outputs to leave"
                          : task.missing == 0 ? "is ready or running"
                          : task.outputs_acquired ? "waits for readers of what it overwrites"
                                                  : "misses inputs or blocks");
      for (std::uint8_t i = 0; i < task.operand_count; ++i) {
        const Operand& operand = task.operands[i];
        if (task.executed && operand.scratch == nullptr)
          continue;  // its inputs may be freed already
        text +=
            fmt::format("; tile {} of matrix {} ({}): {}", operand.tile.index,
                        operand.tile.matrix.value(), name(operand.kind),
                        operand.in != nullptr && !task.executed ? state_of(operand.in) : "output");
        if (operand.scratch != nullptr) {
          text += operand.scratch->state == SlotHolder::State::held ? ", block held"
                                                                    : ", no block for it";
        }
      }
      return;
    }
    case Item::Kind::send: {
      const auto& send = static_cast<const Send&>(item);
      text += fmt::format(", a message: {} to node {} ({}, {})", tile_name(send.tile, send.number),
                          send.to.value(), send.has_data ? "data at hand" : state_of(send.version),
                          send.granted ? "granted" : "not granted by its receiver");
      return;
    }
    case Item::Kind::sink: {
      const auto& sink = static_cast<const Sink&>(item);
      text += fmt::format(
          ", a minor output expected from node {}: {} ({})", sink.from.value(),
          tile_name(sink.version->tile, sink.version->number),
          sink.version->waits_for_block ? "readers of the old version remain" : "not arrived");
      return;
    }
  }
}

namespace {

std::int32_t extra_slots(const Links& slots) {
  std::int32_t count = 0;
  for (const Links* l = slots.next; l != &slots; l = l->next) ++count;
  return count;
}

/// Missing inputs of a task that are available elsewhere and are to be brought for it.
std::int32_t offered_inputs(const Task& task) {
  std::int32_t count = 0;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Copy* in = task.operands[i].in;
    if (in == nullptr || in->present) continue;
    if (in->kind == Copy::Kind::remote) {
      const auto& version = static_cast<const RemoteVersion&>(*in);
      if (version.offered && version.first_user == &task) ++count;
    } else if (in->kind == Copy::Kind::replica) {
      const auto& replica = static_cast<const Replica&>(*in);
      if (replica.state != SlotHolder::State::idle && replica.user == &task) ++count;
    }
  }
  return count;
}

bool is_valid_item(const Item& item) {
  if (item.item_kind != Item::Kind::task) return true;
  const auto& task = static_cast<const Task&>(item);
  return task.executed || task.missing == 0 || task.offered == offered_inputs(task);
}

}  // namespace

bool Protocol::is_valid() const {
  for (const auto& job : jobs_) {
    std::int32_t count = 0;
    std::int32_t extra = extra_slots(job->orphan_slots);
    std::uint64_t last = 0;
    for (const Links* l = job->items.next; l != &job->items; l = l->next) {
      const auto& item = *static_cast<const Item*>(l);
      if (item.order < last || !is_valid_item(item)) return false;
      last = item.order;
      ++count;
      extra += extra_slots(item.slots);
    }
    if (count != job->unfinished) return false;
    for (const Pool& pool : job->pools) {
      if (!pool.is_valid()) return false;
      extra -= pool.extra;
    }
    if (extra != 0) return false;  // each extra slot belongs to one item
  }
  bool versions_are = true;
  for (const auto& matrix : matrices_) {
    std::as_const(matrix->tiles).for_each_touched([&](const TileState& tile) {
      for (const LocalVersion* v = tile.current; v != nullptr; v = v->previous) {
        versions_are = versions_are && v->Copy::is_valid() && (v->next == nullptr || v->closed) &&
                       (v->previous == nullptr || v->previous->next == v);
      }
    });
  }
  return versions_are;
}

}  // namespace heddle::protocol
