#include "node-runtime/collectives/group_core.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "base/clock.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {
namespace {

/// `work()`; what is wrong with types, algorithms or memory comes without the call's name.
template <class Work>
auto named(const Call& call, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    const Error known = as_error(error);
    throw Error(known.code(), fmt::format("{}: {}", call.describe(), known.what()));
  }
}

/// What the call leaves open, but the fragment.
void fill_in(Call& call, const CollectiveOptions& defaults) {
  CollectiveOptions& options = call.options;
  if (!options.order) options.order = defaults.order;
  if (!options.copies) options.copies = defaults.copies;
  // Lists of buffers go from rank to rank: nothing is to be chosen.
  const bool has_choice = !call.is_listed || call.kind == CollectiveKind::all_gather;
  if (options.algorithm.empty() && has_choice) options.algorithm = defaults.algorithm;
  if (options.algorithm.empty()) options.algorithm = "auto";
}

/// What a board reduces in the order of places.
std::vector<std::int32_t> members_by_place(const Levels& levels) {
  std::vector<std::int32_t> members;
  if (!ReductionOrder(levels, Order::places).is_balanced()) return members;
  for (const Rank rank : levels.order()) members.push_back(rank.value());
  return members;
}

}  // namespace

std::shared_ptr<GroupCore> GroupCore::make(std::weak_ptr<UserMessages> messages, Options options) {
  std::shared_ptr<GroupCore> core(new GroupCore(std::move(messages), std::move(options)));
  if (core->options_.have_devices) core->set_have_devices();
  return core;
}

GroupCore::GroupCore(std::weak_ptr<UserMessages> messages, Options options)
    : options_(std::move(options)),
      devices_(std::move(messages)),
      planner_(options_.own, options_.places, options_.rates, &devices_),
      log_(std::make_shared<CallLog>()) {
  if (!options_.waiting.drive && user_messages()->is_driven()) {
    options_.waiting.drive = [weak = std::weak_ptr(user_messages())] {
      if (const auto alive = weak.lock()) alive->drive();
    };
  }
  own_.nodes = options_.nodes;
  own_.send = [this](const p2p::Outgoing& message, NodeId to, std::int32_t tag, p2p::OnEnd on_end) {
    return user_messages()->send(message, to, tag, options_.channel, std::move(on_end));
  };
  own_.receive = [this](const p2p::Incoming& room, NodeId from, std::int32_t tag,
                        p2p::OnEnd on_end) {
    return user_messages()->receive(room, from, tag, options_.channel, std::move(on_end));
  };
  own_.work = [this](p2p::DeviceWork work, p2p::OnEnd on_end) {
    return user_messages()->work(std::move(work), std::move(on_end));
  };
  own_.refer = [this](std::shared_ptr<p2p::Referral> referral, p2p::OnEnd on_end) {
    return user_messages()->refer(std::move(referral), std::move(on_end));
  };
  own_.misfit = [this](std::int64_t number, Rank peer) { control_->misfit(number, peer); };
  own_.over = [this](std::int64_t number, const Error* failure) { over(number, failure); };
  own_.quiet = [this](std::int64_t number, const std::string& step) {
    control_->quiet(number, step);
  };
  own_.stuck = [this](std::int64_t number, const std::string& step) {
    control_->stuck(number, step);
  };
  own_.compare = [this](std::int64_t number) { control_->compare_calls(number); };
  own_.patience = options_.patience;
  own_.waiting = options_.waiting;
  control_ = GroupControl::make(
      user_messages(),
      {options_.nodes, options_.own, options_.channel, options_.patience, options_.waiting}, log_);
  if (options_.is_counted) user_messages()->count_group(1);
}

/// Nobody has a handle, and no operation is under way.
GroupCore::~GroupCore() {
  const auto messages = devices_.messages_if_alive();
  if (messages != nullptr && options_.is_counted) messages->count_group(-1);
}

// ---- calls -----------------------------------------------------------------------------------

/// Of the device that the stream is of.
std::optional<p2p::LaneId> GroupCore::lane_for(const Call& call, const Stream* stream) const {
  if (stream == nullptr) return std::nullopt;
  const auto lane = user_messages()->lane_of(stream->device());
  if (!lane) {
    throw Error(ErrorCode::usage,
                fmt::format("{}: the stream is of device '{}', which is none of this node's whose "
                            "memory messages take",
                            call.describe(), stream->device().info().name));
  }
  if (call.reduces()) require_device_form(call.operation, stream->device().info().backend);
  return lane;
}

GroupCore::Begun GroupCore::begin(Call call, Stream* stream) {
  const std::int64_t start_ns = trace_start();
  fill_in(call, options_.defaults);
  // A fragment says nothing to messages that are not forwarded: the board does not ask.
  if (call.options.fragment_bytes == 0) {
    call.options.fragment_bytes = options_.defaults.fragment_bytes;
  }
  const std::int64_t number = log_->take_number(call);
  Begun begun;
  std::uint64_t seal = 0;
  try {
    check(call, rank(), size());
    const auto lane = lane_for(call, stream);
    Planner::Planned planned =
        named(call, [&] { return planner_.plan(call, number, stream != nullptr); });
    begun.choice = std::move(planned.choice);
    seal = planned.task.seal = log_->seal_behind_others(planned.task.seal);
    if (stream != nullptr) {
      std::vector<Stage>& before = planned.task.before;
      before.insert(before.begin(), WaitingStreams::gate(*stream, *lane, *user_messages()));
      streams_.stop(number, *stream, *lane, *user_messages());
    }
    // The operations keep the group alive.
    const std::shared_ptr<const GroupMessages> messages(shared_from_this(), &own_);
    begun.operation = std::make_shared<Operation>(std::move(planned.task), messages, number);
  } catch (const std::exception& error) {
    streams_.go_on(number, nullptr);
    control_->refuse(number, as_error(error));
    throw;
  }
  if (const auto why = log_->begin(number, seal, begun.operation)) {
    // The caller hears it; its stream does nothing that it was not asked for.
    streams_.go_on(number, nullptr);
    throw Error(*why);
  }
  note_traced(call, begun, stream != nullptr, start_ns);
  begun.operation->begin();
  if (stream != nullptr) {
    const auto messages = user_messages();
    // Where no thread moves messages the caller does, until its stream can go on.
    if (messages->is_driven()) {
      begun.operation->wait();
    } else {
      WaitingStreams::watch(*stream, begun.operation, options_.patience, *messages);
    }
  }
  if (options_.explanations != nullptr) {
    begun.explain = [explanations = options_.explanations, call = std::move(call),
                     choice = begun.choice, operation = begun.operation](double seconds) {
      const std::string& way = operation->way();
      explanations->add(call, way.empty() ? choice.text() : way, choice, seconds,
                        operation->why_not());
    };
  }
  return begun;
}

void GroupCore::run(Call call) {
  fill_in(call, options_.defaults);
  const bool is_for_board = board_ != nullptr && board_->takes(call);
  if (options_.explanations == nullptr) {
    return is_for_board ? run_on_board(call) : begin(std::move(call)).operation->wait();
  }
  const auto from = std::chrono::steady_clock::now();
  const auto seconds = [from] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  if (is_for_board) {
    run_on_board(call);
    const double took = seconds();
    options_.explanations->add(call, "at the board of the host", planner_.choose(call), took);
    return;
  }
  const Begun begun = begin(std::move(call));
  begun.operation->wait();
  begun.explain(seconds());
}

void GroupCore::run_on_board(const Call& call) {
  // One after the other, in the order of their numbers.
  const std::scoped_lock turn(board_mutex_);
  const std::int64_t start_ns = trace_start();
  const std::int64_t number = log_->take_number(call);
  try {
    check(call, rank(), size());
    named(call, [&] { board_->check_types(call); });
  } catch (const std::exception& error) {
    control_->refuse(number, as_error(error));
    throw;
  }
  const std::uint64_t seal = log_->seal_behind_others(seal_of(call, number));
  if (const auto why = log_->begin_at_board(number, seal)) throw Error(*why);
  at_board_ = number;
  at_board_since_ = options_.waiting.now();
  compares_after_ = GroupMessages::compares_after;
  try {
    board_->run(call, seal);
  } catch (const BoardMisfit& other) {
    control_->misfit(number, other.peer);
    throw control_->what_it_was(number);
  } catch (const std::exception& error) {
    // The others wait for this member's part, unless they know.
    control_->operation_failed(number, as_error(error));
    throw;
  }
  log_->end_at_board();
  if (options_.trace == nullptr) return;
  TracedOperation shown = traced(call, number, start_ns);
  shown.algorithm = "host board";
  options_.trace->add(shown);
}

// ---- trace -----------------------------------------------------------------------------------

std::int64_t GroupCore::trace_start() const {
  return options_.trace == nullptr ? 0 : now_ns();
}

TracedOperation GroupCore::traced(const Call& call, std::int64_t number,
                                  std::int64_t start_ns) const {
  return {.operation = name_of(call.kind),
          .algorithm = {},
          .group = options_.channel.value(),
          .number = number,
          .bytes = bytes_of(call),
          .ranks = size(),
          .start_ns = start_ns};
}

/// Before the operation begins: it cannot be over yet.
void GroupCore::note_traced(const Call& call, const Begun& begun, bool is_on_stream,
                            std::int64_t start_ns) {
  if (options_.trace == nullptr) return;
  const std::int64_t number = begun.operation->number();
  TracedOperation shown = traced(call, number, start_ns);
  shown.algorithm = begun.choice.text();
  shown.is_on_stream = is_on_stream;
  const std::scoped_lock lock(trace_mutex_);
  traced_.insert_or_assign(number, std::move(shown));
}

std::optional<TracedOperation> GroupCore::take_traced(std::int64_t number) {
  const std::scoped_lock lock(trace_mutex_);
  auto found = traced_.extract(number);
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
}

void GroupCore::over(std::int64_t number, const Error* failure) {
  const auto operation = log_->end(number);
  auto traced = take_traced(number);
  if (traced && failure == nullptr) {
    if (operation != nullptr && !operation->way().empty()) traced->algorithm = operation->way();
    options_.trace->add(*traced);
  }
  streams_.go_on(number, failure);
  if (failure == nullptr || log_->failure_of(number)) return;  // or all know
  control_->operation_failed(number, *failure);
}

// ---- board -----------------------------------------------------------------------------------

/// By the thread that waits at the board, now and then: throws when its operation has failed.
void GroupCore::look_from_board() {
  if (const auto failure = log_->failure_of(at_board_)) throw Error(*failure);
  const auto waited = options_.waiting.now() - at_board_since_;
  if (waited > compares_after_) {
    control_->compare_calls(at_board_);
    compares_after_ *= 2;
  }
  if (waited > options_.patience) control_->quiet(at_board_, "others at the board");
}

bool GroupCore::is_on_one_host() const {
  for (std::int32_t r = 1; r < size(); ++r) {
    if (options_.places[Rank{r}].host != options_.places[Rank{0}].host) return false;
  }
  return true;
}

void GroupCore::set_have_devices() {
  options_.have_devices = true;
  if (size() == 1 || !is_on_one_host()) return;
  // The system maps memory of an emulated device in microseconds, that of a GPU in up to a second
  // (bench/results/2026-11-22-several-nodes-h200.md).
  const bool maps_slowly =
      devices_.device(p2p::LaneId{0}).info().backend != DeviceBackend::emulated;
  planner_.set_direct({options_.own, options_.nodes, std::make_shared<KnownMemory>(), maps_slowly,
                       options_.copies});
}

void GroupCore::set_up_board() {
  if (size() == 1 || !is_on_one_host()) return;
  // The lowest rank's memory; all tell whether they have it.
  using Name = p2p::HostRegion::Name;
  std::optional<p2p::HostRegion> memory;
  Name name;
  const std::size_t bytes = HostBoard::bytes_for(size());
  try {
    if (rank() == 0) {
      memory.emplace(0, bytes);
      name = memory->name();
    }
  } catch (const Error&) {
    name = {};
  }
  Call giving;
  giving.kind = CollectiveKind::broadcast;
  giving.options.name = "making a board";
  (rank() == 0 ? giving.inputs : giving.outputs)
      .emplace_back(Incoming{&name, static_cast<std::int64_t>(sizeof name)});
  begin(giving).operation->wait();
  try {
    if (rank() != 0 && name.fd >= 0) memory.emplace(name);
  } catch (const Error&) {
    memory.reset();  // a sandbox that refuses it: messages do
  }
  std::int8_t has_memory = memory ? 1 : 0;
  Call asking;
  asking.kind = CollectiveKind::all_reduce;
  asking.is_in_place = true;
  asking.operation = ReduceOperation::minimum();
  asking.options.name = "making a board";
  asking.outputs.emplace_back(Incoming{&has_memory, 1, Scalar::int8});
  begin(asking).operation->wait();
  if (has_memory == 0) return;
  board_ = std::make_unique<HostBoard>(
      std::move(*memory), size(), rank(), members_by_place(planner_.levels()),
      Board::Patience{options_.looks, options_.yields, [this] { look_from_board(); },
                      options_.waiting.drive},
      devices_);
}

std::string GroupCore::describe_memory() const {
  std::string text = fmt::format("memory of a group of {} ranks on rank {}\n", size(), rank());
  if (board_ != nullptr) {
    text += fmt::format("  board     {} bytes of one host, shared by all ranks: small operations\n",
                        HostBoard::bytes_for(size()));
  } else {
    text += "  board     none: small operations go by messages\n";
  }
  const HostMemoryInUse& host = devices_.host_memory();
  text += fmt::format(
      "  host      {} bytes now, {} at most so far: slots of fragments and packed elements of the "
      "operations under way, of which there are at most {}\n",
      host.bytes(), host.bytes_max(), CallLog::under_way_max);
  const auto messages = user_messages();
  for (std::int32_t lane = 0; lane < messages->devices(); ++lane) {
    text += fmt::format(
        "  device {}  {} bytes: the same on a device; kept for the next operations until the group "
        "has gone\n",
        lane, devices_.scratch_bytes(p2p::LaneId{lane}));
    text += fmt::format(
        "  host of device {}  {} bytes, page-locked, of all groups of the node, at most {}: "
        "the host cache of operations between hosts\n",
        lane, messages->locked_scratch().bytes(p2p::LaneId{lane}), LockedScratch::bytes_max);
  }
  return text;
}

}  // namespace heddle::collectives
