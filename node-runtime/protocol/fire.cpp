#include "base/assert.hpp"
#include "base/prefetch.hpp"
#include "node-runtime/protocol/protocol.hpp"

/// FIRE: what a finished write triggers, by the rules of 001 section 6.2:
///
///   rule                            here
///   1 owner: stop scanning          fire(): `if (writes) return`. Lists belong to versions, so a
///                                   write can only be last; it is in the list only if it also
///                                   reads a version that is not present yet (add_output())
///   2 native input: ready           trigger(), Target::task: input_ready()
///   3 intranode alien input: copy,  trigger(), Target::replica: request_block(), CopyAction;
///     then ready                    copy_finished() fires the replica's list
///   4 internode alien input:        trigger(), Target::send: try_send(), SendAction when granted;
///     message                       data_arrived() fires the list of the receiving node
///   5 native minor output: stop     as 1; task_finished() fires each output of the task
///     scanning, fire its list too
///   6 sink minor output: stop       no instance: its version is not present; sink_done() fires it
///     scanning, fire on arrival     after copy_finished() or data_arrived()
///   7 intranode source: copy to     no instance: task_finished(), deliver_minor_output(),
///     the sink, fire its list       CopyAction, copy_finished(), sink_done()
///   8 internode source: message     no instance: task_finished(), deliver_minor_output(),
///     to the sink                   try_send(), SendAction when granted
///
/// Beyond the paper: grants, asks and offers of blocks (messages.cpp), pools (lifetime.cpp),
/// renaming (acquire()).
namespace heddle::protocol {

void Protocol::expect_finished(const Task& task) {
  prefetch_to_write(&task, sizeof(Task));
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    const Operand& operand = task.operands[i];
    prefetch_to_write(&operand, sizeof(Operand));
    if (operand.in != nullptr) prefetch_to_write(operand.in, sizeof(Copy));
    if (operand.out != nullptr) prefetch_to_write(operand.out, sizeof(LocalVersion));
  }
}

void Protocol::task_finished(Task& task, Actions& actions) {
  HEDDLE_DEBUG(!task.executed && task.missing == 0 && task.outputs_acquired);
  Job& job = *task.job;
  task.executed = true;
  ++job.counters.finished;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    __builtin_prefetch(task.operands[i].in);
    __builtin_prefetch(task.operands[i].out);
  }
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    Operand& operand = task.operands[i];
    switch (operand.kind) {
      case InstanceKind::owner:
      case InstanceKind::native_minor_output: {
        LocalVersion& out = *operand.out;
        Copy* renamed_from = operand.in;
        out.writer = nullptr;
        fire(out, actions);
        if (renamed_from != nullptr) visit(*renamed_from, actions);
        break;
      }
      case InstanceKind::native_input:
      case InstanceKind::intranode_alien_input:
        visit(*operand.in, actions);
        break;
      case InstanceKind::intranode_source_minor_output:
      case InstanceKind::internode_source_minor_output:
        if (operand.in != nullptr) visit(*operand.in, actions);
        break;
      default:
        HEDDLE_CHECK(false, "operand of kind {}", name(operand.kind));
    }
  }
  if (task.pending_outputs == 0) {
    finish_item(task, actions);
    records_.tasks.destroy(&task);
    check_drained(job, actions);
    return;
  }
  ++task.pending_outputs;  // keeps the task until all deliveries below have begun
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    if (task.operands[i].scratch != nullptr) {
      deliver_minor_output(task.operands[i], actions);
    }
  }
  output_delivered(task, actions);
  check_drained(job, actions);
}

void Protocol::fire(Copy& copy, Actions& actions) {
  HEDDLE_DEBUG(!copy.present);
  copy.present = true;
  Instance* instance = copy.first;
  copy.first = copy.last = nullptr;
  while (instance != nullptr) {
    Instance* next = instance->next;
    // Rarely cached: load it while this instance is handled.
    __builtin_prefetch(next);
    const bool writes = instance->kind == InstanceKind::owner ||
                        instance->kind == InstanceKind::native_minor_output;
    trigger(*instance, actions);
    if (writes) return;  // last of the list; `copy` may be destroyed, its block passed on
    instance = next;
  }
  collect(copy, actions);
}

void Protocol::trigger(Instance& instance, Actions& actions) {
  switch (instance.target_kind) {
    case Instance::Target::task:
      input_ready(*static_cast<Task*>(instance.target), actions);
      break;
    case Instance::Target::replica: {
      Replica& replica = *static_cast<Replica*>(instance.target);
      request_block(*replica.owner_job, replica, replica.place, *replica.user, actions);
      input_available(*replica.user, actions);
      break;
    }
    case Instance::Target::send: {
      Send& send = *static_cast<Send*>(instance.target);
      send.has_data = true;
      try_send(send, actions);
      break;
    }
  }
}

namespace {

void make_ready(Task& task, Actions& actions) {
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    Operand& operand = task.operands[i];
    if (operand.scratch != nullptr) {
      operand.block = operand.scratch->granted;
      if (operand.in != nullptr) operand.copy_from = operand.in->block;
    } else if (operand.out != nullptr) {
      operand.block = operand.out->block;
    } else {
      operand.block = operand.in->block;
    }
  }
  actions.ready.push_back(&task);
}

}  // namespace

/// One of the task's missing inputs or blocks is there.
void Protocol::input_ready(Task& task, Actions& actions) {
  HEDDLE_DEBUG(task.missing > 0);
  if (--task.missing > 0) {
    if (task.missing == task.offered) prioritize_inputs(task, actions);
    return;
  }
  if (task.outputs_acquired) {
    make_ready(task, actions);
  } else {
    acquire_outputs(task, actions);
  }
}

void Protocol::acquire_outputs(Task& task, Actions& actions) {
  task.outputs_acquired = true;
  task.missing = 1;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    Operand& operand = task.operands[i];
    const bool writes_in_place =
        operand.kind == InstanceKind::owner || operand.kind == InstanceKind::native_minor_output;
    if (writes_in_place && !acquire(*operand.out, &operand, actions)) ++task.missing;
    if (operand.scratch == nullptr) continue;
    ++task.missing;
    request_block(*task.job, *operand.scratch, task.place, task, actions);
  }
  if (--task.missing == 0) make_ready(task, actions);
}

namespace {

/// The item that will write `version`.
Item& writer_of(const LocalVersion& version) {
  if (version.writer != nullptr) return *version.writer;
  Sink& sink = *version.sink;
  if (sink.source != nullptr) return *sink.source;
  return sink;
}

}  // namespace

/// Gives `version` a block to be written to: the first version of a temporary tile gets one of the
/// job's pool, others the block of the replaced version if it has no readers left, else a spare one
/// (renaming, D3), else the write waits. Pool blocks are requested only when the inputs are
/// present: earlier requests, of tasks far ahead, would hold the blocks that copies of their inputs
/// need. No deadlock: the awaited readers come earlier in the sequential program.
bool Protocol::acquire(LocalVersion& version, Operand* operand, Actions& actions) {
  if (version.block.valid()) return true;
  LocalVersion* before = version.previous;
  if (before == nullptr && version.temporary) {
    Item& writer = writer_of(version);
    request_block(*writer.job, *version.pool_block, version.place, writer, actions);
    version.waits_for_block = !version.block.valid();
    return version.block.valid();
  }
  if (before != nullptr && before->visited()) {
    versions_.take_block_of_previous(version);
    return true;
  }
  if (before != nullptr && !version.temporary && versions_.take_spare_block(version)) {
    if (operand != nullptr && operand->mode == AccessMode::read_write) {
      operand->copy_from = before->block;
      operand->in = before;
      ++before->expected;
    }
    return true;
  }
  version.waits_for_block = true;
  return false;
}

/// The writer of `version`, whose inputs are present, may write to its block.
void Protocol::block_is_free(LocalVersion& version, Actions& actions) {
  version.waits_for_block = false;
  if (version.writer != nullptr) {
    input_ready(*version.writer, actions);
    return;
  }
  Sink& sink = *version.sink;
  if (sink.source == nullptr) {
    actions.grants.push_back({sink.from, sink.job->id, version.tile, version.number, version.place,
                              version.block, false, &sink});
    return;
  }
  const Task& source = *sink.source;
  ++source.job->counters.copies;
  actions.copies.push_back({CopyAction::Kind::sink, source.priority, source.job->id, version.tile,
                            version.number, source.place, version.place,
                            source.operands[sink.operand].scratch->granted, version.block, &sink});
}

// ---- minor outputs ---------------------------------------------------------------------------

void Protocol::deliver_minor_output(Operand& operand, Actions& actions) {
  if (operand.kind == InstanceKind::intranode_source_minor_output) {
    Sink& sink = *operand.way.sink;
    if (acquire(*sink.version, nullptr, actions)) block_is_free(*sink.version, actions);
    return;
  }
  Send& send = *operand.way.send;
  send.has_data = true;
  try_send(send, actions);
}

void Protocol::sink_done(Sink& sink, Actions& actions) {
  LocalVersion& version = *sink.version;
  version.sink = nullptr;
  fire(version, actions);
  if (sink.source != nullptr) {
    Task& task = *sink.source;
    release_scratch(task.operands[sink.operand], actions);
    records_.sinks.destroy(&sink);
    output_delivered(task, actions);
    return;
  }
  finish_item(sink, actions);
  records_.sinks.destroy(&sink);
}

void Protocol::release_scratch(Operand& operand, Actions& actions) {
  release_block(*operand.scratch, actions);
  records_.scratches.destroy(operand.scratch);
  operand.scratch = nullptr;
}

void Protocol::output_delivered(Task& task, Actions& actions) {
  if (--task.pending_outputs > 0) return;
  finish_item(task, actions);
  records_.tasks.destroy(&task);
}

void Protocol::copy_finished(const CopyAction& copy, Actions& actions) {
  switch (copy.kind) {
    case CopyAction::Kind::replica: {
      Replica& replica = *static_cast<Replica*>(copy.record);
      Job& job = *replica.owner_job;
      BaseCopy* source = replica.source;
      --replica.user->offered;
      fire(replica, actions);
      visit(*source, actions);
      check_drained(job, actions);
      return;
    }
    case CopyAction::Kind::sink: {
      Sink& sink = *static_cast<Sink*>(copy.record);
      Job& job = *sink.source->job;
      sink_done(sink, actions);
      check_drained(job, actions);
      return;
    }
  }
}

// ---- items -----------------------------------------------------------------------------------

void Protocol::finish_item(Item& item, Actions& actions) {
  Job& job = *item.job;
  const bool was_oldest = job.items.next == &item;
  Links& heir = item.next == &job.items ? job.orphan_extra_blocks
                                        : static_cast<Item*>(item.next)->extra_blocks;
  heir.take_all(item.extra_blocks);
  item.unlink();
  --job.unfinished;
  if (was_oldest) oldest_changed(job, actions);
}

void Protocol::check_drained(Job& job, Actions& actions) {
  if (!job.generation_ended || job.unfinished > 0 || job.pending_sends > 0) return;
  if (job.drained) return;
  for (const BlockPool& pool : job.pools) {
    if (pool.free() < pool.capacity()) return;
  }
  job.drained = true;
  actions.drained.push_back(&job);
}

}  // namespace heddle::protocol
