#include "node-runtime/threads/mpi_progress.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <sched.h>
#include <sys/prctl.h>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/require.hpp"

namespace heddle {
namespace {

constexpr std::int64_t heartbeat_ns = 500'000'000;
/// How long after the last event the thread keeps looking without rest.
constexpr std::int64_t alert_ns = 30'000;
/// Pauses between looks: on cores that it shares with CPU workers, while one of these waits for
/// data (a share of what it has waited so far, within limits, so that what comes is late by no
/// more than that share: falling asleep and waking costs as much as a short pause, and with more
/// nodes than cores it takes from those that compute what the others wait for), and while all
/// compute (they call it between tasks); on one of its own that it is not to spin on; while nothing
/// is expected.
constexpr std::int64_t pause_us_idle_worker = 10;
constexpr std::int64_t pause_us_idle_worker_max = 200;
constexpr std::int64_t pause_share = 8;
constexpr std::int64_t pause_us_shared = 1000;
constexpr std::int64_t pause_us_parked = 100;
constexpr std::int64_t pause_us_quiet = 1000;

/// Longest wait that is one record, so that totals are never much behind.
constexpr std::int64_t wait_recorded_ns_max = 50'000'000;

/// First character of a failure's text: whose failure it is.
constexpr char own = 'o';
constexpr char relayed = 'r';

}  // namespace

MpiProgress::MpiProgress(Engine& engine, Communicator& communicator, TileTransport& tiles,
                         trace::ThreadTrace& trace)
    : engine_(engine),
      communicator_(communicator),
      tiles_(tiles),
      trace_(trace),
      rank_(communicator.rank()),
      size_(communicator.size()),
      received_(header_receives),
      failure_text_(failure_text_max),
      awake_(now_ns()),
      heard_ns_(size_) {
  tiles_.serve(engine, trace);
  for (int r = 0; r < size_; ++r) {
    const std::int32_t process = communicator.local_processes()[static_cast<std::size_t>(r)];
    const bool is_watched = process != 0 && r != rank_;
    peer_processes_.push_back(is_watched ? std::make_unique<ProcessWatch>(process) : nullptr);
  }
}

MpiProgress::~MpiProgress() = default;

void MpiProgress::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // pauses of some microseconds are meant as such
  for (std::uint32_t slot = 0; slot < header_receives; ++slot) post_header_receive(slot);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(failure_text_.data(), failure_text_max, MPI_CHAR, MPI_ANY_SOURCE, failure_tag,
                      communicator_.headers(), &request),
            "receiving");
  add(request, {Operation::receive_failure, 0});

  for (;;) {
    const Doorbell::Ticket ticket = engine_.message_bell.ticket();
    if (engine_.stopping()) break;
    const std::int64_t begin = now_ns();
    bool progressed = post_outbox();
    progressed |= post_delayed();
    progressed |= post_collective();
    progressed |= poll();
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

void MpiProgress::add(MPI_Request request, Flight flight) {
  requests_.push_back(request);
  flights_.push_back(flight);
}

// ---- outgoing --------------------------------------------------------------------------------

bool MpiProgress::post_outbox() {
  Outbox outbox = engine_.take_outbox();
  if (outbox.empty()) return false;
  if (!outbox.failure.empty()) {
    tell_failure(outbox.failure, outbox.failure_elsewhere);
    return true;
  }
  for (const JobBegin& begin : outbox.begun) {
    if (rank_ == 0) {
      compare_begin(begin, 0);
      continue;
    }
    Header header;
    header.type = Type::begun;
    header.job = begin.job.value();
    header.fingerprint = begin.fingerprint;
    send_header(header, 0);
  }
  for (const JobVerdict& verdict : outbox.cancelled) {
    send_to_all(header_of(Type::cancel, verdict));  // how the job ended comes with `ended`
  }
  std::sort(outbox.sends.begin(), outbox.sends.end(),
            [](const auto& a, const auto& b) { return a.priority > b.priority; });
  post_all(outbox.sends);
  post_all(outbox.asks);
  post_all(outbox.grants);
  post_all(outbox.offers);
  for (const JobVerdict& verdict : outbox.done) {
    if (rank_ == 0) {
      merge_verdict(verdict, 0);
    } else {
      send_header(header_of(Type::drained, verdict), 0, verdict.error);
    }
  }
  return true;
}

// ---- injected delays, for tests --------------------------------------------------------------

std::int64_t MpiProgress::delay_until() {
  const MessageFaults& faults = engine_.options().faults;
  if (faults.delay_us_max == 0) return 0;
  delay_state_ = (delay_state_ ^ faults.seed ^ static_cast<std::uint64_t>(rank_ + 1)) *
                     std::uint64_t{0x9E3779B97F4A7C15} +
                 1;
  const auto delay_us = (delay_state_ >> 33) % (faults.delay_us_max + 1);
  return now_ns() + static_cast<std::int64_t>(delay_us) * 1000;
}

bool MpiProgress::delay(const Delayed& action) {
  if (action.until_ns == 0) return false;
  delayed_.push_back(action);
  return true;
}

bool MpiProgress::post_delayed() {
  bool posted = false;
  const std::int64_t now = delayed_.empty() ? 0 : now_ns();
  for (std::size_t i = 0; i < delayed_.size();) {
    if (delayed_[i].until_ns > now) {
      ++i;
      continue;
    }
    const Delayed action = delayed_[i];
    delayed_[i] = delayed_.back();
    delayed_.pop_back();
    std::visit([this](const auto& one) { post(one); }, action.action);
    posted = true;
  }
  return posted;
}

template <class Action>
void MpiProgress::post_all(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    if (!delay(Delayed{delay_until(), action})) post(action);
  }
}

template <class Action>
MpiProgress::Header MpiProgress::header_of(Type type, const Action& action) {
  Header header;
  header.type = type;
  header.job = action.job.value();
  header.matrix = action.tile.matrix.value();
  header.tile = action.tile.index;
  header.version = action.number.value();
  return header;
}

MpiProgress::Header MpiProgress::header_of(Type type, const JobVerdict& verdict) {
  Header header;
  header.type = type;
  header.job = verdict.job.value();
  header.status = verdict.status;
  header.info = verdict.info;
  header.pivot = verdict.pivot;
  header.code = static_cast<std::int32_t>(verdict.code);
  return header;
}

JobVerdict MpiProgress::verdict_of(const Packet& packet) {
  const Header& header = packet.header;
  return {protocol::JobId{header.job},
          header.status,
          header.info,
          header.pivot,
          static_cast<ErrorCode>(header.code),
          std::string(packet.text.data(), header.text_bytes)};
}

void MpiProgress::post(const protocol::AskAction& ask) {
  send_header(header_of(Type::ask, ask), ask.from.value());
}

void MpiProgress::post(const protocol::GrantAction& grant) {
  Header header = header_of(Type::grant, grant);
  header.tag = tiles_.expect(grant);
  header.asked = grant.asked ? 1 : 0;
  send_header(header, grant.from.value());
}

void MpiProgress::post(const protocol::OfferAction& offer) {
  send_header(header_of(Type::offer, offer), offer.to.value());
}

/// Truncates a text that does not fit into a packet.
void MpiProgress::send_header(const Header& header, int to, std::string_view text) {
  std::uint32_t slot = 0;
  if (free_outgoing_.empty()) {
    slot = static_cast<std::uint32_t>(outgoing_.size());
    outgoing_.emplace_back();
  } else {
    slot = free_outgoing_.back();
    free_outgoing_.pop_back();
  }
  Packet& packet = outgoing_[slot];
  const std::size_t bytes = std::min(text.size(), packet.text.size());
  packet.header = header;
  packet.header.text_bytes = static_cast<std::uint32_t>(bytes);
  std::copy_n(text.data(), bytes, packet.text.data());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(&packet, static_cast<int>(sizeof(Header) + bytes), MPI_BYTE, to, header_tag,
                      communicator_.headers(), &request),
            "sending a header");
  add(request, {Operation::send_header, slot});
}

void MpiProgress::send_to_all(const Header& header, std::string_view text) {
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) send_header(header, r, text);
  }
}

void MpiProgress::tell_failure(const std::string& text, bool elsewhere) {
  std::vector<char> message(failure_text_max);
  message[0] = elsewhere ? relayed : own;
  std::strncpy(message.data() + 1, text.c_str(), message.size() - 2);
  std::vector<MPI_Request> requests;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(message.data(), failure_text_max, MPI_CHAR, r, failure_tag,
                  communicator_.headers(), &request) == MPI_SUCCESS) {
      requests.push_back(request);
    }
  }
  // Bounded: whoever is gone does not answer any more.
  const std::int64_t until = now_ns() + 1'000'000'000;
  int all = 0;
  while (all == 0 && now_ns() < until) {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE);
  }
}

// ---- incoming --------------------------------------------------------------------------------

void MpiProgress::post_header_receive(std::uint32_t slot) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(&received_[slot], sizeof(Packet), MPI_BYTE, MPI_ANY_SOURCE, header_tag,
                      communicator_.headers(), &request),
            "receiving a header");
  add(request, {Operation::receive_header, slot});
}

bool MpiProgress::poll() {
  const int count = static_cast<int>(requests_.size());
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int completed_count = 0;
  check_mpi(
      MPI_Testsome(count, requests_.data(), &completed_count, indices_.data(), statuses_.data()),
      "waiting for messages");
  if (completed_count <= 0) return false;
  for (int i = 0; i < completed_count; ++i) {
    completed(flights_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])],
              statuses_[static_cast<std::size_t>(i)]);
  }
  std::size_t kept = 0;  // completed ones are null now; those posted meanwhile are at the end
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    flights_[kept] = flights_[i];
    ++kept;
  }
  requests_.resize(kept);
  flights_.resize(kept);
  hand_over();
  return true;
}

void MpiProgress::completed(Flight flight, const MPI_Status& status) {
  switch (flight.operation) {
    case Operation::receive_header: {
      heard_ns_[NodeId{status.MPI_SOURCE}] = awake_.at(now_ns());
      packet_arrived(received_[flight.slot], status.MPI_SOURCE);
      post_header_receive(flight.slot);
      return;
    }
    case Operation::send_header:
      free_outgoing_.push_back(flight.slot);
      return;
    case Operation::receive_failure:
      engine_.fail_with(status.MPI_SOURCE, failure_text_.data() + 1, failure_text_[0] == relayed);
      engine_.take_outbox();  // the others have heard it from that node
      return;
    case Operation::collective: {
      {
        const std::lock_guard lock(collective_mutex_);
        // Release: the waiting thread sees the result with `is_done`.
        std::exchange(collective_, nullptr)->is_done.store(true, std::memory_order_release);
      }
      collective_bell_.ring_all();
      return;
    }
  }
}

/// Tells the engine at once what has come and gone.
bool MpiProgress::move_tiles() {
  bool progressed = false;
  try {
    progressed = tiles_.progress();
  } catch (const Error&) {
    // Perhaps another node has said why it ends, or the system knows that it has ended.
    poll();
    if (engine_.failed()) return true;
    watched_ns_ = -heartbeat_ns;
    watch_peers();
    throw;
  }
  const TileTransport::Ended ended = tiles_.take_ended();
  if (ended.empty()) return progressed;
  engine_.deliver([&](protocol::Protocol& protocol, protocol::Actions& actions) {
    for (const auto& [landing, empty] : ended.landings) {
      protocol.data_arrived(*landing, empty, actions);
    }
    for (protocol::Send* send : ended.sends) protocol.send_finished(*send, actions);
  });
  return true;
}

void MpiProgress::packet_arrived(const Packet& packet, int from) {
  const Header& header = packet.header;
  switch (header.type) {
    case Type::ask:
    case Type::grant:
    case Type::offer:
      arrivals_.versions.emplace_back(header, NodeId{from});
      return;
    case Type::begun:
      compare_begin({protocol::JobId{header.job}, header.fingerprint}, from);
      return;
    case Type::drained:
      merge_verdict(verdict_of(packet), from);
      return;
    case Type::ended:
      arrivals_.ended.push_back(verdict_of(packet));
      return;
    case Type::cancel:
      arrivals_.cancelled.push_back(verdict_of(packet));
      return;
    case Type::heartbeat:
      return;
  }
}

/// What another node has to say about a version.
void MpiProgress::tell(protocol::Protocol& protocol, const Header& header, NodeId from,
                       protocol::Actions& actions) {
  const protocol::JobId job{header.job};
  const protocol::TileId tile{protocol::MatrixId{header.matrix}, header.tile};
  const Version number{header.version};
  switch (header.type) {
    case Type::ask:
      return protocol.ask_arrived(job, tile, number, from, actions);
    case Type::grant:
      return protocol.grant_arrived(job, tile, number, from, header.tag, header.asked != 0,
                                    actions);
    default:
      return protocol.offer_arrived(job, tile, number, from, actions);
  }
}

/// Tells the engine all that has come in, under one lock.
void MpiProgress::hand_over() {
  if (arrivals_.empty()) return;
  Arrivals arrivals = std::exchange(arrivals_, {});
  for (const JobVerdict& verdict : arrivals.cancelled) engine_.cancel_from_elsewhere(verdict);
  if (!arrivals.versions.empty()) {
    engine_.deliver([&](protocol::Protocol& protocol, protocol::Actions& actions) {
      for (const auto& [header, from] : arrivals.versions) tell(protocol, header, from, actions);
    });
  }
  for (const JobVerdict& verdict : arrivals.ended) engine_.job_ended(verdict);
}

/// On node 0: a node has begun a job. Where one has begun another job in its place, nothing of
/// either can come out right.
void MpiProgress::compare_begin(const JobBegin& begin, int from) {
  auto found =
      std::ranges::find(beginnings_, begin.job, [](const Beginning& b) { return b.job.job; });
  if (found == beginnings_.end()) {
    beginnings_.push_back({begin, from, 0});
    found = beginnings_.end() - 1;
  }
  if (found->job.fingerprint != begin.fingerprint) {
    throw Error(
        ErrorCode::usage,
        fmt::format("nodes {} and {} have started different jobs as their job {}; all nodes "
                    "must start the same jobs, on the same matrices, in the same order",
                    std::min(from, found->from), std::max(from, found->from),
                    begin.job.value() + 1));
  }
  if (++found->nodes == size_) beginnings_.erase(found);
}

/// On node 0: a node has drained a job. When all have, they are told how it ended (is_worse()), of
/// nodes that met the same what the lowest one met: the same whatever came first.
void MpiProgress::merge_verdict(const JobVerdict& verdict, int from) {
  auto found = std::find_if(agreements_.begin(), agreements_.end(),
                            [&](const Agreement& a) { return a.verdict.job == verdict.job; });
  if (found == agreements_.end()) {
    agreements_.push_back({verdict, from, 0});
    found = agreements_.end() - 1;
  }
  const JobResult theirs = result_of(verdict);
  const JobResult merged = result_of(found->verdict);
  if (is_worse(theirs, merged) || (!is_worse(merged, theirs) && from < found->from)) {
    found->verdict = verdict;
    found->from = from;
  }
  if (++found->nodes < size_) return;
  send_to_all(header_of(Type::ended, found->verdict), found->verdict.error);
  arrivals_.ended.push_back(found->verdict);
  agreements_.erase(found);
  hand_over();
}

// ---- collectives -----------------------------------------------------------------------------

void MpiProgress::all_reduce(std::span<double> values, Reduction reduction) {
  const auto collective = std::make_shared<Collective>();
  collective->values.assign(values.begin(), values.end());
  collective->reduction = reduction;
  {
    const std::lock_guard lock(collective_mutex_);
    require(collective_ == nullptr,
            "Node: two threads reduce at the same time; one thread at a time calls collectives");
    collective_ = collective;
  }
  engine_.message_bell.ring();
  for (;;) {
    const Doorbell::Ticket ticket = collective_bell_.ticket();
    if (collective->is_done.load(std::memory_order_acquire)) break;
    if (engine_.failed()) throw *engine_.failure();
    require(!engine_.stopping(), "Node: a collective was called after Node::stop()");
    collective_bell_.wait(ticket, 100'000);
  }
  std::ranges::copy(collective->values, values.begin());
  unify_nans(values);
}

void MpiProgress::barrier() {
  double nothing = 0;
  all_reduce({&nothing, 1}, Reduction::sum);
}

bool MpiProgress::has_collective() {
  const std::lock_guard lock(collective_mutex_);
  return collective_ != nullptr;
}

bool MpiProgress::post_collective() {
  std::shared_ptr<Collective> collective;
  {
    const std::lock_guard lock(collective_mutex_);
    collective = collective_;
  }
  if (collective == nullptr || std::exchange(collective->is_posted, true)) return false;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(
      MPI_Iallreduce(MPI_IN_PLACE, collective->values.data(),
                     static_cast<int>(collective->values.size()), MPI_DOUBLE,
                     operations_.of(collective->reduction), communicator_.collectives(), &request),
      "reducing over the nodes");
  add(request, {Operation::collective, 0});
  return true;
}

// ---- waiting ---------------------------------------------------------------------------------

void MpiProgress::wait(Doorbell::Ticket ticket) {
  const WaitPolicy policy = engine_.options().wait;
  if (policy == WaitPolicy::spin) {
    relax_cpu();
    return;
  }
  const bool in_transfer = tiles_.is_moving() || !delayed_.empty() || has_collective();
  const bool at_work = in_transfer || tiles_.is_expecting() || engine_.active_jobs() > 0;
  const bool awaited = engine_.idle_workers() > 0 && at_work;
  if (policy == WaitPolicy::adaptive && now_ns() - active_ns_ < alert_ns) {
    ::sched_yield();
    return;
  }
  const std::int64_t from = now_ns();
  const bool shared = engine_.options().oversubscribed;
  // With a core of its own it looks without rest: each look of the two sides that a message needs
  // would cost it a pause. A worker that sleeps leaves a core that has nothing better to do.
  const bool restless = at_work && policy == WaitPolicy::adaptive && !shared;
  if (restless || (awaited && (!shared || engine_.options().has_own_cores))) {
    ::sched_yield();
  } else if (awaited) {
    engine_.message_bell.wait(ticket, std::clamp((from - active_ns_) / 1000 / pause_share,
                                                 pause_us_idle_worker, pause_us_idle_worker_max));
  } else {
    const std::int64_t busy_us = shared ? pause_us_shared : pause_us_parked;
    engine_.message_bell.wait(ticket, at_work ? busy_us : pause_us_quiet);
  }
  if (waiting_since_ns_ == 0) waiting_since_ns_ = from;
  if (from - waiting_since_ns_ > wait_recorded_ns_max) record_wait(from);
}

/// One wait from the first pause to the next event, whatever was looked at in between.
void MpiProgress::record_wait(std::int64_t end_ns) {
  if (waiting_since_ns_ == 0) return;
  trace_.wait(trace::WaitCause::message, waiting_since_ns_, end_ns);
  waiting_since_ns_ = 0;
}

void MpiProgress::watch_processes() {
  for (NodeId node{0}; node < peer_processes_.end_index(); ++node) {
    const auto& process = peer_processes_[node];
    if (process != nullptr && process->has_ended()) lost(node, "its process has ended");
  }
}

/// A node that is gone is noticed at once when it ran on this host, else by its silence.
void MpiProgress::watch_peers() {
  const std::int64_t now = awake_.at(now_ns());
  if (now - watched_ns_ < heartbeat_ns / 5) return;
  watched_ns_ = now;
  watch_processes();
  const NodeId watched{(rank_ + size_ - 1) % size_};
  if (std::int64_t& mine = heard_ns_[NodeId{rank_}]; now - mine > heartbeat_ns) {
    mine = now;
    send_header(Header{}, (rank_ + 1) % size_);
  }
  std::int64_t& heard = heard_ns_[watched];
  const double silence_seconds = engine_.options().silence_seconds;
  if (static_cast<double>(now - heard) * 1e-9 <= silence_seconds) return;
  const auto& process = peer_processes_[watched];
  if (process != nullptr && process->is_stopped()) {
    heard = now;  // somebody has stopped it, and may let it go on
    return;
  }
  lost(watched,
       fmt::format("it has been silent for {} s (runtime.silence_seconds)", silence_seconds));
}

void MpiProgress::lost(NodeId node, const std::string& how) {
  const auto rank = static_cast<std::size_t>(node.value());
  throw Error(ErrorCode::communication, fmt::format("node {} on host {} was lost: {}", rank,
                                                    communicator_.hosts()[rank], how));
}

void MpiProgress::run_down() {
  const Outbox outbox = engine_.take_outbox();
  if (!outbox.failure.empty()) tell_failure(outbox.failure, outbox.failure_elsewhere);
  collective_bell_.ring_all();
}

/// Nothing travels any more: nodes let go of each other's memory, so that it can be freed. Bounded,
/// as a lost node ends it.
void MpiProgress::close() {
  tiles_.close();
  while (!tiles_.is_closed()) {
    if (tiles_.progress()) continue;
    watch_processes();
    ::sched_yield();
  }
}

/// Takes back what is still posted. After a failure nobody is there to complete it.
void MpiProgress::shut_down() {
  if (engine_.failed()) return run_down();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (flights_[i].operation == Operation::receive_header ||
        flights_[i].operation == Operation::receive_failure) {
      MPI_Cancel(&requests_[i]);
    }
  }
  check_mpi(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
            "ending");
}

}  // namespace heddle
