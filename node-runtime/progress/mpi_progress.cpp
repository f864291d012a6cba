#include "node-runtime/progress/mpi_progress.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <sched.h>
#include <sys/prctl.h>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "node-runtime/progress/progress_pause.hpp"

namespace heddle {
namespace {

/// Longest wait that is one record, so that totals are never much behind.
constexpr std::int64_t wait_recorded_ns_max = 50'000'000;
/// How long a node goes on with messages behind another one's failure: without any news, and at
/// most; and behind its own failure.
constexpr std::int64_t last_pause_ns_max = 300'000'000;
constexpr std::int64_t last_messages_ns_max = 2'000'000'000;
constexpr std::int64_t own_last_messages_ns_max = 100'000'000;
/// How long a failing node waits for others to make room for what it has said before.
constexpr std::int64_t hand_out_ns_max = 1'000'000'000;

}  // namespace

MpiProgress::MpiProgress(Engine& engine, Communicator& communicator, TileTransport& tiles,
                         trace::ThreadTrace& trace)
    : engine_(engine),
      communicator_(communicator),
      tiles_(tiles),
      trace_(trace),
      delayed_(engine.options().faults, communicator.rank()),
      agreement_(communicator.size()),
      peers_({communicator.rank(), communicator.hosts(), communicator.local_processes(),
              engine.options().silence_seconds},
             now_ns()) {
  tiles_.serve(engine, trace);
}

MpiProgress::~MpiProgress() = default;

void MpiProgress::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // pauses of some microseconds are meant as such
  check_mpi(
      MPI_Irecv(failure_.data(), static_cast<int>(FailureMessage::bytes), MPI_CHAR, MPI_ANY_SOURCE,
                FailureMessage::tag, communicator_.headers(), &failure_receive_),
      "receiving");

  for (;;) {
    const Doorbell::Ticket ticket = engine_.bells.message.ticket();
    if (engine_.stopping()) break;
    const std::int64_t begin = now_ns();
    bool progressed = post_outbox();
    progressed |= post_delayed();
    progressed |= hear_failure();
    if (engine_.failed()) break;
    progressed |= move_tiles();
    if (progressed) {
      record_wait(begin);
      active_ns_ = now_ns();
      trace_.add_busy(active_ns_ - begin);
      continue;
    }
    watch_peers();
    wait(ticket);
  }
  record_wait(now_ns());
  if (!engine_.failed()) close();
  shut_down();
}

// ---- outgoing --------------------------------------------------------------------------------

bool MpiProgress::post_outbox() {
  Outbox outbox = engine_.take_outbox();
  if (outbox.empty()) return false;
  if (!outbox.failure.empty()) {
    tell_failure(outbox);
    return true;
  }
  for (const JobBegin& begin : outbox.begun) {
    if (rank() == 0) {
      agreement_.begun(begin, 0);
    } else {
      tiles_.tell(NodeId{0}, ProgressMessage::of(begin));
    }
  }
  for (const JobVerdict& verdict : outbox.cancelled) {
    send_to_all(
        ProgressMessage::of(Type::cancel, verdict));  // how the job ended comes with `ended`
  }
  std::sort(outbox.sends.begin(), outbox.sends.end(),
            [](const auto& a, const auto& b) { return a.priority > b.priority; });
  post_all(outbox.sends);
  post_all(outbox.asks);
  post_all(outbox.grants);
  post_all(outbox.offers);
  for (const JobVerdict& verdict : outbox.done) {
    if (rank() == 0) {
      drained(verdict, 0);
    } else {
      tiles_.tell(NodeId{0}, ProgressMessage::of(Type::drained, verdict), verdict.error);
    }
  }
  return true;
}

bool MpiProgress::post_delayed() {
  if (delayed_.is_empty()) return false;
  return delayed_.post_due(now_ns(), [this](const auto& action) { post(action); });
}

template <class Action>
void MpiProgress::post_all(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    if (!delayed_.delays() || !delayed_.delay(action, now_ns())) post(action);
  }
}

void MpiProgress::post(const protocol::AskAction& ask) {
  tiles_.tell(ask.from, ProgressMessage::of(ask));
}

void MpiProgress::post(const protocol::OfferAction& offer) {
  tiles_.tell(offer.to, ProgressMessage::of(offer));
}

void MpiProgress::send_to_all(const Header& header, std::string_view text) {
  for (int r = 0; r < communicator_.size(); ++r) {
    if (r != rank()) tiles_.tell(NodeId{r}, header, text);
  }
}

// ---- incoming --------------------------------------------------------------------------------

bool MpiProgress::hear_failure() {
  if (has_heard_failure()) return false;
  int is_there = 0;
  MPI_Status status;
  check_mpi(MPI_Test(&failure_receive_, &is_there, &status), "waiting for messages");
  if (is_there == 0) return false;
  take_what_has_come();
  engine_.fail_with(status.MPI_SOURCE, failure_.text(), failure_.is_of_elsewhere());
  engine_.take_outbox();  // the others have heard it from that node
  return true;
}

bool MpiProgress::move_tiles() {
  bool progressed = false;
  try {
    progressed = tiles_.progress();
  } catch (const Error&) {
    // Perhaps another node has said why it ends, or the system knows that it has ended.
    hear_failure();
    if (engine_.failed()) return true;
    peers_.look_soon();
    watch_peers();
    throw;
  }
  return hand_over_news() || progressed;
}

/// Tells the engine what others have said and, under one lock, which tiles have arrived and which
/// were sent. False: there was nothing.
bool MpiProgress::hand_over_news() {
  const bool has_words = tiles_.has_words();
  if (has_words) {
    for (const auto& [from, message] : tiles_.take_words()) {
      peers_.heard(from.value(), now_ns());
      message_arrived(message, from.value());
    }
    hand_over();
  }
  const TileTransport::Ended ended = tiles_.take_ended();
  if (ended.empty()) return has_words;
  engine_.deliver([&](protocol::Protocol& protocol, protocol::Actions& actions) {
    for (const auto& [landing, empty] : ended.landings) {
      protocol.data_arrived(*landing, empty, actions);
    }
    for (protocol::Send* send : ended.sends) protocol.send_finished(*send, actions);
  });
  return true;
}

void MpiProgress::message_arrived(const ProgressMessage& message, int from) {
  switch (message.header.type) {
    case Type::ask:
    case Type::grant:
    case Type::offer:
      arrivals_.versions.emplace_back(message.header, NodeId{from});
      return;
    case Type::begun:
      agreement_.begun(message.begin(), from);
      return;
    case Type::drained:
      drained(message.verdict(), from);
      return;
    case Type::ended:
      arrivals_.ended.push_back(message.verdict());
      return;
    case Type::cancel:
      arrivals_.cancelled.push_back(message.verdict());
      return;
    case Type::heartbeat:
      return;
  }
}

/// Tells the engine all that has arrived; asks, grants and offers under one lock.
void MpiProgress::hand_over() {
  if (arrivals_.empty()) return;
  Arrivals arrivals = std::exchange(arrivals_, {});
  for (const JobVerdict& verdict : arrivals.cancelled) engine_.cancel_from_elsewhere(verdict);
  if (!arrivals.versions.empty()) {
    engine_.deliver([&](protocol::Protocol& protocol, protocol::Actions& actions) {
      for (const auto& [header, from] : arrivals.versions) {
        ProgressMessage::deliver(header, from, protocol, actions);
      }
    });
  }
  for (const JobVerdict& verdict : arrivals.ended) engine_.job_ended(verdict);
}

/// On node 0: a node has drained a job; when all have, they are told how it ended.
void MpiProgress::drained(const JobVerdict& verdict, int from) {
  const std::optional<JobVerdict> agreed = agreement_.drained(verdict, from);
  if (!agreed) return;
  send_to_all(ProgressMessage::of(Type::ended, *agreed), agreed->error);
  arrivals_.ended.push_back(*agreed);
  hand_over();
}

// ---- waiting ---------------------------------------------------------------------------------

void MpiProgress::wait(Doorbell::Ticket ticket) {
  const EngineOptions& options = engine_.options();
  if (options.wait == WaitPolicy::spin) return relax_cpu();
  const std::int64_t from = now_ns();
  const bool in_transfer = tiles_.is_moving() || !delayed_.is_empty();
  const ProgressPause pause = pause_for(
      {.policy = options.wait,
       .shares_cores = options.oversubscribed,
       .has_own_cores = options.has_own_cores,
       .is_at_work = in_transfer || tiles_.is_expecting() || engine_.counters().active_jobs() > 0,
       .worker_waits = engine_.counters().idle_workers() > 0,
       .idle_ns = from - active_ns_});
  if (pause.kind == ProgressPause::Kind::sleep) {
    engine_.bells.message.wait(ticket, pause.sleep_us);
  } else {
    ::sched_yield();
  }
  if (!pause.is_wait) return;
  if (waiting_since_ns_ == 0) waiting_since_ns_ = from;
  if (from - waiting_since_ns_ > wait_recorded_ns_max) record_wait(from);
}

/// One wait lasts from the first pause to the next event, through all looks in between.
void MpiProgress::record_wait(std::int64_t end_ns) {
  if (waiting_since_ns_ == 0) return;
  trace_.wait(trace::WaitCause::message, waiting_since_ns_, end_ns);
  waiting_since_ns_ = 0;
}

void MpiProgress::watch_peers() {
  if (peers_.look(now_ns())) tiles_.tell_sign_of_life(NodeId{peers_.successor()});
}

/// No failure overtakes what its node had said before.
void MpiProgress::take_what_has_come() {
  const std::int64_t end = now_ns() + own_last_messages_ns_max;
  try {
    while (tiles_.progress() && now_ns() < end) static_cast<void>(hand_over_news());
  } catch (const std::exception&) {
    // The node fails anyway.
  }
}

/// What a node sent before an exception left it ends what waits only for it: perhaps by way of the
/// program's threads, which have to run for that. Nobody waits for them here where this node has
/// failed by itself.
void MpiProgress::take_last_messages() {
  const std::int64_t most = has_heard_failure() ? last_messages_ns_max : own_last_messages_ns_max;
  const std::int64_t begin = now_ns();
  std::int64_t active = begin;
  try {
    for (std::int64_t now = begin; now - begin < most; now = now_ns()) {
      if (tiles_.progress()) {
        active = now;
      } else if (!has_heard_failure() || now - active > last_pause_ns_max) {
        return;
      } else {
        ::sched_yield();
      }
    }
  } catch (const std::exception&) {
    // The node has failed already.
  }
}

void MpiProgress::tell_failure(const Outbox& outbox) {
  try {
    tiles_.hand_out(now_ns() + hand_out_ns_max);
  } catch (const std::exception&) {
    // The node has failed already; the others are to know.
  }
  heddle::send_to_all(communicator_, {outbox.failure, outbox.failure_elsewhere});
}

void MpiProgress::run_down() {
  const Outbox outbox = engine_.take_outbox();
  if (!outbox.failure.empty()) tell_failure(outbox);
  take_last_messages();
  // Nobody progresses messages any more: threads of the program that wait for theirs are told.
  tiles_.abandon(*engine_.failure());
}

/// No message is in flight any more: nodes close each other's memory, so that it can be freed. The
/// loop ends, as a lost node is noticed.
void MpiProgress::close() {
  tiles_.close();
  while (!tiles_.is_closed()) {
    if (tiles_.progress()) continue;
    peers_.look_at_processes();
    ::sched_yield();
  }
}

/// Cancels the receive that is still posted. After a failure no node is there to complete it.
void MpiProgress::shut_down() {
  if (engine_.failed()) return run_down();
  MPI_Cancel(&failure_receive_);
  check_mpi(MPI_Wait(&failure_receive_, MPI_STATUS_IGNORE), "ending");
}

}  // namespace heddle
