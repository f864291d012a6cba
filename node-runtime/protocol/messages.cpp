#include "base/assert.hpp"
#include "node-runtime/protocol/protocol.hpp"

/// Messages between nodes: a node that reads a version grants the block that the data is sent to. A
/// node without a free block asks for the version, and the writer's node offers it.
namespace heddle::protocol {

void Protocol::grant_arrived(JobId job, TileId tile, Version number, NodeId to, std::uint32_t tag,
                             bool asked, Actions& actions) {
  Send* const send = grants_.grant({job, tile, number, to}, tag, asked);
  if (send != nullptr) try_send(*send, actions);
}

void Protocol::ask_arrived(JobId job, TileId tile, Version number, NodeId to, Actions& actions) {
  Send* const send = grants_.ask({job, tile, number, to});
  if (send != nullptr) try_send(*send, actions);
}

void Protocol::offer_arrived(JobId job, TileId tile, Version number, NodeId from,
                             Actions& actions) {
  RemoteVersion** const found = remotes_.find({job, tile, number, from});
  if (found == nullptr) return;  // granted, received and read meanwhile
  RemoteVersion& version = **found;
  if (version.state != BlockRequest::State::waiting) return;
  version.offered = true;
  input_available(static_cast<Task&>(*version.first_user), actions);
}

void Protocol::try_send(Send& send, Actions& actions) {
  if (!send.has_data || send.posted) return;
  if (!send.granted) {
    if (!send.asked) return;
    send.asked = false;
    actions.offers.push_back({send.to, send.job->id, send.tile, send.number});
    return;
  }
  send.posted = true;
  grants_.posted({send.job->id, send.tile, send.number, send.to});
  const bool is_minor_output = send.task != nullptr;
  const PlaceId place = is_minor_output ? send.task->place : send.version->place;
  const BlockRef block =
      is_minor_output ? send.task->operands[send.operand].scratch->granted : send.version->block;
  ++send.job->counters.sends;
  actions.sends.push_back({send.to, send.tag, send.priority, send.job->id, send.tile, send.number,
                           place, block, send.job->cancelled, &send});
}

void Protocol::send_finished(Send& send, Actions& actions) {
  HEDDLE_DEBUG(send.posted && !send.done);
  Job& job = *send.job;
  send.done = true;
  if (send.task != nullptr) {
    Task& task = *send.task;
    release_scratch(task.operands[send.operand], actions);
    records_.sends.destroy(&send);
    output_delivered(task, actions);
  } else {
    LocalVersion& version = *send.version;
    const bool keep = !version.closed && !job.generation_ended;
    finish_item(send, actions);
    if (!keep) drop_send(send);
    visit(version, actions);
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
