#include <algorithm>

#include "base/assert.hpp"
#include "node-runtime/protocol/protocol.hpp"

/// Lifetime of versions, their copies and their blocks (DESIGN D3, D8).
namespace heddle::protocol {

void Protocol::visit(Copy& copy, Actions& actions) {
  ++copy.actual;
  HEDDLE_DEBUG(copy.is_valid(), "{} visits of {}", copy.actual, copy.expected);
  collect(copy, actions);
}

void Protocol::close(Copy& copy, Actions& actions) {
  if (copy.closed) return;
  copy.closed = true;
  if (copy.kind == Copy::Kind::remote) {
    auto& version = static_cast<RemoteVersion&>(copy);
    version.open.unlink();
    for (Replica* r = version.replicas; r != nullptr;) {
      Replica* next = r->sibling;
      close(*r, actions);
      r = next;
    }
  } else if (copy.kind == Copy::Kind::replica) {
    static_cast<Replica&>(copy).open.unlink();
  }
  collect(copy, actions);
}

void Protocol::close_version(LocalVersion& version, Actions& actions) {
  version.closed = true;
  for (Replica* r = version.replicas; r != nullptr;) {
    Replica* next = r->sibling;
    close(*r, actions);
    r = next;
  }
  for (Send* send = version.sends; send != nullptr;) {
    Send* next = send->sibling;
    if (send->done) drop_send(*send);
    send = next;
  }
  collect_local(version, actions);
}

void Protocol::collect(Copy& copy, Actions& actions) {
  if (!copy.visited()) return;
  switch (copy.kind) {
    case Copy::Kind::local:
      collect_local(static_cast<LocalVersion&>(copy), actions);
      return;
    case Copy::Kind::remote: {
      auto& version = static_cast<RemoteVersion&>(copy);
      for (Replica* r = version.replicas; r != nullptr; r = r->sibling) r->source = nullptr;
      remotes_.erase(MessageKey{version.job, version.tile, version.number, version.from});
      release_slot(version, actions);
      remote_versions_.destroy(&version);
      return;
    }
    case Copy::Kind::replica: {
      auto& replica = static_cast<Replica&>(copy);
      if (replica.source != nullptr) {
        Replica** link = &replica.source->replicas;
        while (*link != &replica) link = &(*link)->sibling;
        *link = replica.sibling;
      }
      release_slot(replica, actions);
      replicas_.destroy(&replica);
      return;
    }
  }
}

/// Frees a version of this node's tile after its last visit, unless its block passes on to a writer
/// that does not wait for it yet: that one takes it in acquire().
void Protocol::collect_local(LocalVersion& version, Actions& actions) {
  if (!version.visited()) return;
  if (version.superseded) {
    matrices_[static_cast<std::size_t>(version.tile.matrix.value())]
        ->spares_for(version.place, version.tile.index)
        .push_back(version.block.index);
    actions.freed.push_back(version.block);
    destroy_local(version);
    return;
  }
  if (LocalVersion* next = version.next; next != nullptr) {
    if (!next->waits_for_block) return;
    take_block(*next);
    block_is_free(*next, actions);
    return;
  }
  if (version.temporary) {
    auto& slot = static_cast<TemporarySlot&>(*version.slot);
    version.slot = nullptr;
    release_slot(slot, actions);
    temporaries_.destroy(&slot);
    destroy_local(version);
  }
}

void Protocol::destroy_local(LocalVersion& version) {
  HEDDLE_DEBUG(version.first == nullptr && version.slot == nullptr && version.sends == nullptr);
  for (Replica* r = version.replicas; r != nullptr; r = r->sibling) r->source = nullptr;
  if (version.next != nullptr) version.next->previous = nullptr;
  if (version.previous != nullptr) version.previous->next = nullptr;
  versions_.destroy(&version);
}

void Protocol::drop_send(Send& send) {
  Send** link = &send.version->sends;
  while (*link != &send) link = &(*link)->sibling;
  *link = send.sibling;
  send.open.unlink();
  send_records_.destroy(&send);
}

// ---- blocks of a job's pools -----------------------------------------------------------------

void Protocol::request_slot(Job& job, SlotHolder& holder, PlaceId place, Item& first_user,
                            Actions& actions) {
  HEDDLE_DEBUG(holder.state == SlotHolder::State::idle);
  holder.pool = &job.pools[static_cast<std::size_t>(place.value())];
  holder.pool_job = &job;
  holder.first_user = &first_user;
  holder.user_order = first_user.order;
  holder.request = ++holder.pool->requests;
  if (enter(holder, actions) || holder.kind != SlotHolder::Kind::landing) return;
  auto& version = static_cast<RemoteVersion&>(holder);
  version.asked = true;
  actions.asks.push_back({version.from, version.job, version.tile, version.number});
}

/// Returns false if the holder waits.
bool Protocol::enter(SlotHolder& holder, Actions& actions) {
  const auto use = static_cast<std::size_t>(holder.use());
  holder.pool->is_used[use] = true;
  if (try_take_slot(holder)) {
    slot_granted(holder, actions);
    return true;
  }
  holder.state = SlotHolder::State::waiting;
  holder.pool->waiting[use].insert(&holder);
  return false;
}

void Protocol::withdraw(SlotHolder& holder) {
  HEDDLE_DEBUG(holder.state == SlotHolder::State::waiting);
  holder.pool->waiting[static_cast<std::size_t>(holder.use())].erase(&holder);
  holder.state = SlotHolder::State::idle;
}

bool Protocol::try_take_slot(SlotHolder& holder) {
  Pool& pool = *holder.pool;
  if (pool.free.empty()) return false;
  const Links& items = holder.pool_job->items;
  const bool live = static_cast<const Item*>(items.next)->order >= holder.user_order;
  if (!live) {
    if (pool.extra >= pool.extra_max(holder.use())) return false;
    holder.extra = true;
    ++pool.extra;
    holder.insert_before(holder.first_user->slots);
  }
  holder.state = SlotHolder::State::held;
  holder.slot = {pool.id, pool.free.back()};
  pool.free.pop_back();
  pool.peak = std::max(pool.peak, pool.capacity - static_cast<std::int32_t>(pool.free.size()));
  return true;
}

void Protocol::slot_granted(SlotHolder& holder, Actions& actions) {
  Job& job = *holder.pool_job;
  switch (holder.kind) {
    case SlotHolder::Kind::replica: {
      auto& replica = static_cast<Replica&>(holder);
      replica.block = replica.slot;
      ++job.counters.copies;
      const BaseCopy& source = *replica.source;
      const Version number = source.job == job.id ? source.number : Version{0};
      actions.copies.push_back({CopyAction::Kind::replica, replica.user->priority, job.id,
                                source.tile, number, source.place, replica.place, source.block,
                                replica.block, &replica});
      return;
    }
    case SlotHolder::Kind::landing: {
      auto& version = static_cast<RemoteVersion&>(holder);
      version.block = version.slot;
      actions.grants.push_back({version.from, job.id, version.tile, version.number, version.place,
                                version.block, holder.user_order, version.asked, &version});
      return;
    }
    case SlotHolder::Kind::scratch:
      input_ready(*static_cast<Scratch&>(holder).task, actions);
      return;
    case SlotHolder::Kind::temporary: {
      auto& slot = static_cast<TemporarySlot&>(holder);
      LocalVersion& version = *slot.version;
      version.block = slot.slot;
      if (version.waits_for_block) block_is_free(version, actions);
      return;
    }
  }
}

void Protocol::release_slot(SlotHolder& holder, Actions& actions) {
  if (holder.state == SlotHolder::State::idle) return;
  HEDDLE_DEBUG(holder.state == SlotHolder::State::held);
  Pool& pool = *holder.pool;
  if (holder.extra) {
    holder.extra = false;
    --pool.extra;
    holder.unlink();
  }
  pool.free.push_back(holder.slot.index);
  actions.freed.push_back(holder.slot);
  holder.state = SlotHolder::State::idle;
  HEDDLE_DEBUG(pool.is_valid());
  retry_waiting(pool, actions);
}

void Protocol::retry_waiting(Pool& pool, Actions& actions) {
  for (Pool::Waiting& waiting : pool.waiting) {
    while (!waiting.empty()) {  // granting may change the set: restart at its beginning
      SlotHolder& holder = **waiting.begin();
      if (!try_take_slot(holder)) break;  // later holders have no better chance
      waiting.erase(waiting.begin());
      slot_granted(holder, actions);
    }
  }
}

void Protocol::oldest_changed(Job& job, Actions& actions) {
  if (!job.items.linked()) return;
  Item& oldest = *static_cast<Item*>(job.items.next);
  while (oldest.slots.linked()) {
    auto& holder = *static_cast<SlotHolder*>(oldest.slots.next);
    holder.extra = false;
    --holder.pool->extra;
    holder.unlink();
  }
  for (Pool& pool : job.pools) retry_waiting(pool, actions);
}

}  // namespace heddle::protocol
