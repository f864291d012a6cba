#include <algorithm>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "node-runtime/protocol/protocol.hpp"

/// APPEND: the instances of a new task in this node's lists (001 section 6.1).
namespace heddle::protocol {
namespace {

/// Nothing: they are not known beforehand.
std::vector<Reader> readers_of(const Job& job, const BaseCopy& version) {
  if (!job.readers) return {};
  return job.readers(version.tile, version.number_in(job.id));
}

bool is_among(NodeId node, std::span<const Reader> readers) {
  return std::ranges::any_of(readers, [&](const Reader& reader) { return reader.node == node; });
}

bool is_sent(const BaseCopy& version, const Job& job, NodeId to) {
  for (const Send* send = version.sends; send != nullptr; send = send->sibling) {
    if (send->to == to && send->job == &job) return true;
  }
  return false;
}

}  // namespace

Task* Protocol::append(Job& job, const Work& work, std::int32_t priority,
                       std::span<const Access> accesses, Actions& actions) {
  HEDDLE_DEBUG(!job.generation_ended && !job.window_is_full(), "job {}", job.id.value());
  HEDDLE_DEBUG(!accesses.empty() && accesses.front().mode != AccessMode::read,
               "a task needs a main output");
  const NodeId me = options_.node;
  const Access& main = accesses.front();
  ++job.next_order;  // shared by all items of the statement, which may depend on each other

  if (main.home.node != me) {
    // The task runs elsewhere: only its accesses to tiles of this node leave instances here.
    bool concerned = false;
    for (const Access& access : accesses) {
      if (access.home.node != me) {
        if (access.mode != AccessMode::read) {
          static_cast<void>(count_remote_write(job, access, actions));
        }
        continue;
      }
      concerned = true;
      if (access.mode != AccessMode::write) {
        add_alien_reader(job, access, main.home.node, priority, actions);
      }
      if (access.mode != AccessMode::read) add_sink(job, access, main.home.node, actions);
    }
    if (!concerned) ++job.counters.skipped;
    return nullptr;
  }

  Task& task = *records_.tasks.create(accesses.size());
  task.work = work;
  task.priority = priority;
  task.place = main.home.place;
  task.operand_count = static_cast<std::uint8_t>(accesses.size());
  task.missing = 1;  // held back until all its operands are entered
  add_item(job, task, actions);
  ++job.counters.tasks;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Access& access = accesses[i];
    Operand& operand = task.operands.emplace(i);
    operand.instance.target = &task;
    operand.mode = access.mode;
    operand.tile = access.tile;
    if (access.mode == AccessMode::read) {
      add_input(task, i, access, actions);
    } else {
      add_output(task, i, access, actions);
    }
  }
  input_ready(task, actions);
  return &task;
}

void Protocol::append_alien_reader(Job& job, const Access& access, NodeId reader,
                                   std::int32_t priority, Actions& actions) {
  HEDDLE_DEBUG(!job.generation_ended, "job {}", job.id.value());
  add_alien_reader(job, access, reader, priority, actions);
}

void Protocol::add_alien_reader(Job& job, const Access& access, NodeId reader,
                                std::int32_t priority, Actions& actions) {
  HEDDLE_DEBUG(access.home.node == options_.node && reader != options_.node);
  LocalVersion& version = version_to_send(job, access);
  if (is_sent(version, job, reader)) return;  // one message per version and node (D2a)
  const std::vector<Reader> readers = readers_of(job, version);
  if (is_among(reader, readers)) return publish(job, version, readers, actions);
  add_send(job, version, {reader, priority}, actions);
}

LocalVersion& Protocol::version_to_send(const Job& job, const Access& access) {
  LocalVersion& version = versions_.current(access);
  const Version number = version.number_in(job.id);
  HEDDLE_DEBUG(access.version == count_here || access.version == number,
               "tile {}: the program reads version {}, the list is at {}", access.tile.index,
               access.version.value(), number.value());
  return version;
}

void Protocol::publish(Job& job, const Access& access, std::span<const Reader> readers,
                       Actions& actions) {
  HEDDLE_DEBUG(!job.generation_ended, "job {}", job.id.value());
  HEDDLE_DEBUG(access.home.node == options_.node);
  publish(job, version_to_send(job, access), readers, actions);
}

void Protocol::publish(Job& job, LocalVersion& version, std::span<const Reader> readers,
                       Actions& actions) {
  for (const Reader& reader : job.route(readers, options_.node).to) {
    if (!is_sent(version, job, reader.node)) add_send(job, version, reader, actions);
  }
}

/// A message to `to` from this node, which grants may lead.
Send& Protocol::add_send(Job& job, TileId tile, Version number, const Reader& to) {
  Send& send = *records_.sends.create();
  send.job = &job;
  send.to = to.node;
  send.tile = tile;
  send.number = number;
  send.priority = to.priority;
  grants_.add({{job.id, tile, number}, to.node}, send);
  return send;
}

void Protocol::add_send(Job& job, BaseCopy& source, const Reader& to, Actions& actions) {
  Send& send = add_send(job, source.tile, source.number_in(job.id), to);
  ++job.pending_sends;
  send.source = &source;
  send.sibling = source.sends;
  source.sends = &send;
  send.open.insert_before(job.open_sends);
  send.instance.target = &send;
  send.instance.target_kind = Instance::Target::send;
  send.instance.kind = InstanceKind::internode_alien_input;
  attach(source, send.instance, actions);
}

void Protocol::release(Job& job, const Access& access, Actions& actions) {
  if (access.home.node != options_.node) {
    const Version number = versions_.remote_version(access, job.id);
    RemoteVersion** const found = remotes_.find({job.id, access.tile, number});
    if (found != nullptr) close(**found, actions);
    return;
  }
  LocalVersion* version = versions_.find_current(access.tile);
  if (version == nullptr) return;
  close_replicas(*version, &job, actions);
  if (version->temporary) {
    versions_.forget_current(access.tile);
    close_version(*version, actions);
  }
}

void Protocol::end_generation(Job& job, Actions& actions) {
  HEDDLE_CHECK(!job.generation_ended);
  job.generation_ended = true;
  while (job.open_remotes.linked()) {
    close(*static_cast<RemoteVersion*>(static_cast<OwnedLinks*>(job.open_remotes.next)->owner),
          actions);
  }
  while (job.open_replicas.linked()) {
    close(*static_cast<Replica*>(static_cast<OwnedLinks*>(job.open_replicas.next)->owner), actions);
  }
  for (Links* link = job.open_sends.next; link != &job.open_sends;) {
    Send& send = *static_cast<Send*>(static_cast<OwnedLinks*>(link)->owner);
    link = link->next;
    if (send.done) drop_send(send);
  }
  versions_.forget_temporaries(job.id,
                               [&](LocalVersion& version) { close_version(version, actions); });
  check_drained(job, actions);
}

void Protocol::add_item(Job& job, Item& item, Actions& actions) {
  item.job = &job;
  item.order = job.next_order;
  const bool was_empty = !job.items.linked();
  item.insert_before(job.items);
  ++job.unfinished;
  if (was_empty) {
    item.extra_blocks.take_all(job.orphan_extra_blocks);
    oldest_changed(job, actions);
  }
}

/// Counts a write to another node's tile: the replaced version gets no new readers.
Version Protocol::count_remote_write(Job& job, const Access& access, Actions& actions) {
  const Version before = versions_.count_remote_write(access, job.id);
  RemoteVersion** const found = remotes_.find({job.id, access.tile, before});
  if (found != nullptr) close(**found, actions);
  return before;
}

LocalVersion& Protocol::new_version(Job& job, const Access& access, Actions& actions) {
  LocalVersion& version = versions_.add_version(access, job.id);
  if (version.previous != nullptr) {
    close_version(*version.previous, actions);
  } else {
    version.pool_block = records_.temporaries.create();  // acquire() requests it before the write
    version.pool_block->version = &version;
  }
  return version;
}

RemoteVersion& Protocol::remote(Job& job, const Access& access, Task& reader, Actions& actions) {
  const Version number = versions_.remote_version(access, job.id);
  RemoteVersion*& entry = remotes_[{job.id, access.tile, number}];
  if (entry != nullptr) return *entry;
  entry = records_.remote_versions.create();
  RemoteVersion& record = *entry;  // the entry may move below
  record.tile = access.tile;
  record.job = job.id;
  record.number = number;
  record.from = access.home.node;
  record.place = reader.place;
  record.open.insert_before(job.open_remotes);
  ++job.counters.receives;
  const std::vector<Reader> readers = readers_of(job, record);
  if (is_among(options_.node, readers)) {
    const Route route = job.route(readers, record.from);
    record.from = route.from;
    // In the list before the readers here, so that they leave before these run.
    for (const Reader& to : route.to) add_send(job, record, to, actions);
  }
  request_block(job, record, record.place, reader, actions);
  return record;
}

Replica& Protocol::replica(Job& job, BaseCopy& base, PlaceId place, Task& user, Actions& actions) {
  for (Replica* r = base.replicas; r != nullptr; r = r->sibling) {
    if (r->place == place && r->owner_job == &job && !r->closed) return *r;
  }
  Replica& created = *records_.replicas.create();
  created.source = &base;
  created.place = place;
  created.owner_job = &job;
  created.user = &user;
  created.sibling = base.replicas;
  base.replicas = &created;
  created.open.insert_before(job.open_replicas);
  created.fetch.target = &created;
  created.fetch.target_kind = Instance::Target::replica;
  created.fetch.kind = InstanceKind::intranode_alien_input;
  attach(base, created.fetch, actions);
  return created;
}

void Protocol::add_input(Task& task, std::uint8_t index, const Access& access, Actions& actions) {
  Operand& operand = task.operands[index];
  ++task.missing;  // before any input is present
  BaseCopy& base = access.home.node == options_.node
                       ? static_cast<BaseCopy&>(versions_.current(access))
                       : static_cast<BaseCopy&>(remote(*task.job, access, task, actions));
  operand.version = base.number_in(task.job->id);
  HEDDLE_DEBUG(access.version == count_here || access.version == operand.version,
               "tile {}: the program reads version {}, the list is at {}", access.tile.index,
               access.version.value(), operand.version.value());
  Copy* copy = &base;
  operand.kind = InstanceKind::native_input;
  if (base.place != task.place) {
    copy = &replica(*task.job, base, task.place, task, actions);
    operand.kind = InstanceKind::intranode_alien_input;
  }
  operand.instance.kind = operand.kind;
  operand.in = copy;
  attach(*copy, operand.instance, actions);
}

void Protocol::add_output(Task& task, std::uint8_t index, const Access& access, Actions& actions) {
  Operand& operand = task.operands[index];
  Job& job = *task.job;
  const bool here = access.home.node == options_.node;

  if (here && access.home.place == task.place) {
    operand.kind = index == 0 ? InstanceKind::owner : InstanceKind::native_minor_output;
    if (access.mode == AccessMode::read_write) {
      LocalVersion& before = versions_.current(access);
      if (!before.present) {  // in the list, but not counted as a visit: its block passes on
        operand.instance.kind = operand.kind;
        ++task.missing;
        before.enqueue(operand.instance);
      }
    }
    operand.out = &new_version(job, access, actions);
    operand.out->writer = &task;
    operand.version = operand.out->number - 1;
    return;
  }

  // A minor output of another place is written to a block at the task's place and sent from there.
  if (access.mode == AccessMode::read_write) add_input(task, index, access, actions);
  Scratch& scratch = *records_.scratches.create();
  scratch.task = &task;
  operand.scratch = &scratch;
  ++task.pending_outputs;  // acquire_outputs() requests its block after the inputs are present
  if (here) {
    operand.kind = InstanceKind::intranode_source_minor_output;
    Sink& sink = *records_.sinks.create();
    sink.source = &task;
    sink.operand = index;
    sink.order = task.order;
    sink.version = &new_version(job, access, actions);
    sink.version->sink = &sink;
    operand.way.sink = &sink;
    operand.version = sink.version->number - 1;
  } else {
    operand.kind = InstanceKind::internode_source_minor_output;
    const Version before = count_remote_write(job, access, actions);
    operand.version = before;
    Send& send = add_send(job, access.tile, before + 1, {access.home.node, task.priority});
    send.task = &task;
    send.operand = index;
    operand.way.send = &send;
  }
}

void Protocol::add_sink(Job& job, const Access& access, NodeId writer, Actions& actions) {
  Sink& sink = *records_.sinks.create();
  add_item(job, sink, actions);
  sink.from = writer;
  ++job.counters.receives;
  sink.version = &new_version(job, access, actions);
  sink.version->sink = &sink;
  if (acquire(*sink.version, nullptr, actions)) block_is_free(*sink.version, actions);
}

/// Adds a reader of `copy`: it is triggered when the copy is present.
void Protocol::attach(Copy& copy, Instance& instance, Actions& actions) {
  HEDDLE_DEBUG(!copy.closed, "a reader is added to a version that was released");
  ++copy.expected;
  if (copy.present) {
    trigger(instance, actions);
  } else {
    copy.enqueue(instance);
  }
}

}  // namespace heddle::protocol
