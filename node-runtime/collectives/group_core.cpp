#include "node-runtime/collectives/group_core.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "base/clock.hpp"
#include "base/process_limits.hpp"
#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {
namespace {

constexpr std::chrono::milliseconds misfit_patience{1000};

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
  if (core->size() > 1) core->listen();
  return core;
}

GroupCore::GroupCore(std::weak_ptr<UserMessages> messages, Options options)
    : options_(std::move(options)),
      devices_(std::move(messages)),
      planner_(options_.own, options_.places, options_.rates, &devices_) {
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
  own_.misfit = [this](std::int64_t number, Rank peer) { misfit(number, peer); };
  own_.over = [this](std::int64_t number, const Error* failure) { over(number, failure); };
  own_.quiet = [this](std::int64_t number, const std::string& step) { quiet(number, step); };
  own_.compare = [this](std::int64_t number) { compare_calls(number); };
  own_.patience = options_.patience;
  own_.waiting = options_.waiting;
  if (options_.is_counted) user_messages()->count_group(1);
}

/// Nobody has a handle, and no operation is under way.
GroupCore::~GroupCore() {
  const auto messages = devices_.messages_if_alive();
  if (messages == nullptr) return;
  if (options_.is_counted) messages->count_group(-1);
  if (listening_ && !listening_->done()) listening_->cancel();
}

// ---- calls -----------------------------------------------------------------------------------

std::int64_t GroupCore::take_number(const Call& call) {
  const std::scoped_lock lock(mutex_);
  if (const Error* const failure = failure_of(next_)) throw own_copy(*failure);
  // Messages are named by numbers modulo operations_max.
  if (!under_way_.empty() && next_ - under_way_.begin()->first >= operations_max) {
    throw Error(ErrorCode::usage,
                fmt::format("{}: {} operations of the group are under way, as many as may be; wait "
                            "for number {} first",
                            call.describe(), under_way_.size(), under_way_.begin()->first));
  }
  const std::int64_t number = next_++;
  under_way_.emplace(number, nullptr);
  calls_.push_back({number, call.summary()});
  if (calls_.size() > calls_remembered) calls_.pop_front();
  return number;
}

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
  const std::int64_t number = take_number(call);
  Begun begun;
  std::uint64_t seal = 0;
  try {
    check(call, rank(), size());
    const auto lane = lane_for(call, stream);
    Planner::Planned planned =
        named(call, [&] { return planner_.plan(call, number, stream != nullptr); });
    begun.choice = std::move(planned.choice);
    seal = planned.task.seal = seal_behind_others(planned.task.seal);
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
    refuse(number, as_error(error));
    throw;
  }
  std::optional<Error> why;
  {
    const std::scoped_lock lock(mutex_);
    const auto refusal = refusals_.extract(number);
    const Error* const failure = failure_of(number);
    if (failure != nullptr || !refusal.empty()) {
      under_way_.erase(number);
      if (Called* const called = find_call(number)) called->is_refused = true;
      why = own_copy(failure != nullptr ? *failure : refusal.mapped());
    } else {
      under_way_[number] = begun.operation;
      if (options_.trace != nullptr) {
        TracedOperation& shown = traced_[number] = traced(call, number, start_ns);
        shown.algorithm = begun.choice.text();
        shown.is_on_stream = stream != nullptr;
      }
      begins(number, seal);
    }
  }
  if (why) {
    // The caller hears it; its stream does nothing that it was not asked for.
    streams_.go_on(number, nullptr);
    throw Error(*why);
  }
  begun.operation->begin();
  // Where no thread moves messages the caller does, until its stream can go on.
  if (stream != nullptr && user_messages()->is_driven()) begun.operation->wait();
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
  const std::int64_t number = take_number(call);
  try {
    check(call, rank(), size());
    named(call, [&] { board_->check_types(call); });
  } catch (const std::exception& error) {
    refuse(number, as_error(error));
    throw;
  }
  const std::uint64_t seal = seal_behind_others(seal_of(call, number));
  {
    const std::scoped_lock lock(mutex_);
    under_way_.erase(number);
    const auto refusal = refusals_.extract(number);
    const Error* const failure = failure_of(number);
    if (failure != nullptr || !refusal.empty()) {
      if (Called* const called = find_call(number)) called->is_refused = true;
      throw own_copy(failure != nullptr ? *failure : refusal.mapped());
    }
    on_board_ = number;
    on_board_since_ = options_.waiting.now();
    compares_after_ = GroupMessages::compares_after;
    begins(number, seal);
  }
  try {
    board_->run(call, seal);
  } catch (const BoardMisfit& other) {
    misfit(number, other.peer);
    throw what_it_was(number);
  } catch (const std::exception& error) {
    // The others wait for this member's part, unless they know.
    const Error why = as_error(error);
    fail_all(first_to_fail(number, why),
             Error(why.code(), fmt::format("rank {} could not do operation {} of the group, {}: {}",
                                           rank(), number, call.describe(), why.what())));
    throw;
  }
  {
    const std::scoped_lock lock(mutex_);
    on_board_ = 0;
  }
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

std::optional<TracedOperation> GroupCore::take_traced(std::int64_t number) {
  auto found = traced_.extract(number);
  if (found.empty()) return std::nullopt;
  const auto operation = under_way_.find(number);
  if (operation != under_way_.end() && operation->second != nullptr &&
      !operation->second->way().empty()) {
    found.mapped().algorithm = operation->second->way();
  }
  return std::move(found.mapped());
}

/// Waits until the peer of a misfit has told all members both calls; if it does not soon, this one
/// tells what it knows.
Error GroupCore::what_it_was(std::int64_t number) {
  {
    std::unique_lock lock(mutex_);
    if (wait_for_news(lock, misfit_patience, [&] { return failure_of(number) != nullptr; })) {
      return own_copy(*failure_);
    }
  }
  quiet(number, "");
  const std::scoped_lock lock(mutex_);
  return own_copy(*failure_);
}

/// By the thread that waits at the board, now and then: throws when its operation has failed.
void GroupCore::look_from_board() {
  {
    const std::scoped_lock lock(mutex_);
    if (const Error* const failure = failure_of(on_board_)) throw own_copy(*failure);
  }
  const auto waited = options_.waiting.now() - on_board_since_;
  if (waited > compares_after_) {
    compare_calls(on_board_);
    compares_after_ *= 2;
  }
  if (waited > options_.patience) {
    quiet(on_board_, "others at the board");
  }
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
  planner_.set_direct(
      {options_.own, options_.nodes, std::make_shared<KnownMemory>(), maps_slowly});
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

}  // namespace heddle::collectives
