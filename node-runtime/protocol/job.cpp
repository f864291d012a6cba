#include "node-runtime/protocol/job.hpp"

#include <fmt/core.h>

namespace heddle::protocol {
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
    return replica.state == BlockRequest::State::held      ? "being copied"
           : replica.state == BlockRequest::State::waiting ? "no block to copy it to"
                                                           : "to be copied once it is there";
  }
  if (copy->kind == Copy::Kind::remote) {
    const auto& version = static_cast<const RemoteVersion&>(*copy);
    return fmt::format(
        "expected from node {}, {}", version.from.value(),
        version.state == BlockRequest::State::held ? "granted" : "no block to receive it");
  }
  return "not written yet";
}

void describe(const Item& item, std::string& text) {
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
          text += operand.scratch->state == BlockRequest::State::held ? ", block held"
                                                                      : ", no block for it";
        }
      }
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

const Send& send_of(const Links& open) {
  return *static_cast<const Send*>(static_cast<const OwnedLinks&>(open).owner);
}

/// The first version that has not been sent; null: all have.
const Send* first_pending(const Links& open_sends) {
  for (const Links* l = open_sends.next; l != &open_sends; l = l->next) {
    if (!send_of(*l).done) return &send_of(*l);
  }
  return nullptr;
}

std::int32_t length(const Links& list) {
  std::int32_t length = 0;
  for (const Links* l = list.next; l != &list; l = l->next) ++length;
  return length;
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
      if (replica.state != BlockRequest::State::idle && replica.user == &task) ++count;
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

std::string Job::blockage() const {
  std::string text;
  if (items.linked()) {
    const Item& oldest = *static_cast<const Item*>(items.next);
    text = fmt::format("job {}: {} unfinished, the oldest is number {} of its program", id.value(),
                       unfinished, oldest.order);
    describe(oldest, text);
  } else {
    text = fmt::format("job {}: nothing unfinished of {} tasks, its program {}", id.value(),
                       counters.tasks, generation_ended ? "has ended" : "is not walked further");
  }
  if (const Send* const send = first_pending(open_sends); send != nullptr) {
    text += fmt::format("; versions still to be sent: {}, the first is {} to node {} ({}, {})",
                        pending_sends, tile_name(send->tile, send->number), send->to.value(),
                        send->has_data ? "data present" : state_of(send->source),
                        send->granted ? "granted" : "not granted by its receiver");
  }
  for (const BlockPool& pool : pools) {
    if (pool.waiting() == 0) continue;
    text += fmt::format("; {} wait for a block of place {} ({} of {} free)", pool.waiting(),
                        pool.place().value(), pool.free(), pool.capacity());
  }
  return text;
}

bool Job::is_valid() const {
  std::int32_t count = 0;
  std::int32_t extra = length(orphan_extra_blocks);
  std::uint64_t last = 0;
  for (const Links* l = items.next; l != &items; l = l->next) {
    const auto& item = *static_cast<const Item*>(l);
    if (item.order < last || !is_valid_item(item)) return false;
    last = item.order;
    ++count;
    extra += length(item.extra_blocks);
  }
  for (const BlockPool& pool : pools) {
    if (!pool.is_valid()) return false;
    extra -= pool.extra();
  }
  std::int32_t pending = 0;
  for (const Links* l = open_sends.next; l != &open_sends; l = l->next) {
    pending += send_of(*l).done ? 0 : 1;
  }
  return count == unfinished && extra == 0 && pending == pending_sends;
}

}  // namespace heddle::protocol
