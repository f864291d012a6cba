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
    close_replicas(version, nullptr, actions);
    drop_done_sends(version);
  } else if (copy.kind == Copy::Kind::replica) {
    static_cast<Replica&>(copy).open.unlink();
  }
  collect(copy, actions);
}

/// Closes the replicas that tasks of `job` read, or all if it is null.
void Protocol::close_replicas(BaseCopy& base, const Job* job, Actions& actions) {
  for (Replica* r = base.replicas; r != nullptr;) {
    Replica* next = r->sibling;
    if (job == nullptr || r->owner_job == job) close(*r, actions);
    r = next;
  }
}

void Protocol::close_version(LocalVersion& version, Actions& actions) {
  version.closed = true;
  close_replicas(version, nullptr, actions);
  drop_done_sends(version);
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
      HEDDLE_DEBUG(version.sends == nullptr, "tile {}", version.tile.index);
      remotes_.erase({version.job, version.tile, version.number});
      release_block(version, actions);
      records_.remote_versions.destroy(&version);
      return;
    }
    case Copy::Kind::replica: {
      auto& replica = static_cast<Replica&>(copy);
      if (replica.source != nullptr) {
        Replica** link = &replica.source->replicas;
        while (*link != &replica) link = &(*link)->sibling;
        *link = replica.sibling;
      }
      release_block(replica, actions);
      records_.replicas.destroy(&replica);
      return;
    }
  }
}

/// Frees a version of this node's tile after its last visit, unless its block passes on to a writer
/// that does not wait for it yet: that one takes it in acquire().
void Protocol::collect_local(LocalVersion& version, Actions& actions) {
  if (!version.visited()) return;
  if (version.superseded) {
    versions_.give_back_spare_block(version);
    actions.freed.push_back(version.block);
    versions_.destroy(version);
    return;
  }
  if (LocalVersion* next = version.next; next != nullptr) {
    if (!next->waits_for_block) return;
    versions_.take_block_of_previous(*next);
    block_is_free(*next, actions);
    return;
  }
  if (version.temporary) {
    TemporaryBlock& block = *std::exchange(version.pool_block, nullptr);
    release_block(block, actions);
    records_.temporaries.destroy(&block);
    versions_.destroy(version);
  }
}

/// They were kept so that none was sent again.
void Protocol::drop_done_sends(BaseCopy& copy) {
  for (Send* send = copy.sends; send != nullptr;) {
    Send* next = send->sibling;
    if (send->done) drop_send(*send);
    send = next;
  }
}

void Protocol::drop_send(Send& send) {
  Send** link = &send.source->sends;
  while (*link != &send) link = &(*link)->sibling;
  *link = send.sibling;
  send.open.unlink();
  records_.sends.destroy(&send);
}

// ---- blocks of a job's pools -----------------------------------------------------------------

void Protocol::request_block(Job& job, BlockRequest& request, PlaceId place, Item& first_user,
                             Actions& actions) {
  request.pool_job = &job;
  request.first_user = &first_user;
  request.user_order = first_user.order;
  if (job.pools[place].request(request, job.oldest_order())) {
    block_granted(request, actions);
    return;
  }
  if (request.kind != BlockRequest::Kind::landing) return;
  auto& version = static_cast<RemoteVersion&>(request);
  version.asked = true;
  actions.asks.push_back({version.from, version.job, version.tile, version.number});
}

/// A missing input of `reader` is available at another place or node.
void Protocol::input_available(Task& reader, Actions& actions) {
  ++reader.offered;
  if (reader.missing == reader.offered) prioritize_inputs(reader, actions);
}

/// All missing inputs of the task are available elsewhere: requests blocks for all of them, since a
/// block for only some would be held in vain.
void Protocol::prioritize_inputs(Task& task, Actions& actions) {
  const Job& job = *task.job;
  BlockPool& pool = task.job->pools[task.place];
  if (!pool.has_early()) return;
  for (std::uint8_t i = 0; i < task.operand_count; ++i) {
    Copy* in = task.operands[i].in;
    if (in == nullptr || in->kind == Copy::Kind::local) continue;
    BlockRequest& request = in->kind == Copy::Kind::remote
                                ? static_cast<BlockRequest&>(static_cast<RemoteVersion&>(*in))
                                : static_cast<Replica&>(*in);
    if (request.first_user != &task || request.state != BlockRequest::State::waiting) continue;
    if (request.prioritized) continue;
    if (pool.prioritize(request, job.oldest_order())) block_granted(request, actions);
  }
}

void Protocol::block_granted(BlockRequest& holder, Actions& actions) {
  Job& job = *holder.pool_job;
  switch (holder.kind) {
    case BlockRequest::Kind::replica: {
      auto& replica = static_cast<Replica&>(holder);
      replica.block = replica.granted;
      ++job.counters.copies;
      const BaseCopy& source = *replica.source;
      actions.copies.push_back({CopyAction::Kind::replica, replica.user->priority, job.id,
                                source.tile, source.number_in(job.id), source.place, replica.place,
                                source.block, replica.block, &replica});
      return;
    }
    case BlockRequest::Kind::landing: {
      auto& version = static_cast<RemoteVersion&>(holder);
      version.block = version.granted;
      actions.grants.push_back({version.from, job.id, version.tile, version.number, version.place,
                                version.block, version.asked, &version});
      for (Send* s = version.sends; s != nullptr; s = s->sibling) try_send(*s, actions);
      return;
    }
    case BlockRequest::Kind::scratch:
      input_ready(*static_cast<Scratch&>(holder).task, actions);
      return;
    case BlockRequest::Kind::temporary: {
      LocalVersion& version = *static_cast<TemporaryBlock&>(holder).version;
      version.block = holder.granted;
      if (version.waits_for_block) block_is_free(version, actions);
      return;
    }
  }
}

void Protocol::release_block(BlockRequest& holder, Actions& actions) {
  if (holder.state == BlockRequest::State::idle) return;
  actions.freed.push_back(holder.granted);
  holder.pool->give_back(holder);
  grant_waiting(*holder.pool, *holder.pool_job, actions);
}

void Protocol::grant_waiting(BlockPool& pool, const Job& job, Actions& actions) {
  while (BlockRequest* const next = pool.grant_next(job.oldest_order())) {
    block_granted(*next, actions);
  }
}

void Protocol::oldest_changed(Job& job, Actions& actions) {
  if (!job.items.linked()) return;
  const Links& extra = static_cast<Item*>(job.items.next)->extra_blocks;
  while (extra.linked()) {
    auto& holder = *static_cast<BlockRequest*>(extra.next);
    holder.pool->no_longer_extra(holder);
  }
  for (BlockPool& pool : job.pools) grant_waiting(pool, job, actions);
}

}  // namespace heddle::protocol
