#include "base/assert.hpp"
#include "node-runtime/protocol/protocol.hpp"

/// Messages between nodes: a node that reads a version grants the block that the data is sent to. A
/// node without a free block asks for the version, and the writer's node offers it.
namespace heddle::protocol {

void Protocol::grant_arrived(JobId job, TileId tile, Version number, NodeId to, std::uint32_t tag,
                             bool asked, Actions& actions) {
  Send* const send = grants_.grant({{job, tile, number}, to}, tag, asked);
  if (send != nullptr) try_send(*send, actions);
}

void Protocol::ask_arrived(JobId job, TileId tile, Version number, NodeId to, Actions& actions) {
  Send* const send = grants_.ask({{job, tile, number}, to});
  if (send != nullptr) try_send(*send, actions);
}

void Protocol::offer_arrived(JobId job, TileId tile, Version number, NodeId from,
                             Actions& actions) {
  RemoteVersion** const found = remotes_.find({job, tile, number});
  if (found == nullptr || (*found)->from != from) return;  // granted, received and read meanwhile
  RemoteVersion& version = **found;
  if (version.state != BlockRequest::State::waiting) return;
  version.offered = true;
  input_available(static_cast<Task&>(*version.first_user), actions);
}

/// What is on its way into the block that the send is from; null: nothing, or not yet.
Landing* Protocol::arriving(const Send& send) const {
  if (!options_.passes_on_arriving || send.source == nullptr) return nullptr;
  if (send.source->kind != Copy::Kind::remote || send.source->place != host_place) return nullptr;
  auto& version = static_cast<RemoteVersion&>(*send.source);
  return version.state == BlockRequest::State::held ? &version : nullptr;
}

void Protocol::try_send(Send& send, Actions& actions) {
  if (send.posted) return;
  Landing* const behind = send.has_data ? nullptr : arriving(send);
  if (!send.has_data && (behind == nullptr || !send.granted)) return;
  if (!send.granted) {
    if (!send.asked) return;
    send.asked = false;
    actions.offers.push_back({send.to, send.job->id, send.tile, send.number});
    return;
  }
  send.posted = true;
  grants_.posted({{send.job->id, send.tile, send.number}, send.to});
  const bool is_minor_output = send.task != nullptr;
  const PlaceId place = is_minor_output ? send.task->place : send.source->place;
  const bool passed_on = !is_minor_output && send.source->kind == Copy::Kind::remote;
  const BlockRef block =
      is_minor_output ? send.task->operands[send.operand].scratch->granted : send.source->block;
  ++send.job->counters.sends;
  actions.sends.push_back({send.to, send.tag, send.priority, send.job->id, send.tile, send.number,
                           place, block, send.job->cancelled, &send, behind, passed_on});
}

void Protocol::send_finished(Send& send, Actions& actions) {
  HEDDLE_DEBUG(send.posted && send.has_data && !send.done);
  Job& job = *send.job;
  send.done = true;
  if (send.task != nullptr) {
    Task& task = *send.task;
    release_scratch(task.operands[send.operand], actions);
    records_.sends.destroy(&send);
    output_delivered(task, actions);
  } else {
    BaseCopy& source = *send.source;
    --job.pending_sends;
    if (source.closed || job.generation_ended) drop_send(send);
    visit(source, actions);
  }
  check_drained(job, actions);
}

void Protocol::data_arrived(Landing& landing, bool empty, Actions& actions) {
  if (landing.landing_kind == Landing::Kind::version) {
    auto& version = static_cast<RemoteVersion&>(landing);
    Job* job = version.pool_job;
    if (empty) job->cancelled = true;
    if (version.offered) --static_cast<Task*>(version.first_user)->offered;
    fire(version, actions);
    check_drained(*job, actions);
    return;
  }
  auto& sink = static_cast<Sink&>(landing);
  Job* job = sink.job;
  if (empty) job->cancelled = true;
  sink_done(sink, actions);
  check_drained(*job, actions);
}

}  // namespace heddle::protocol
