#include "node-runtime/collectives/exchange.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/core.h>
#include <optional>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/process_limits.hpp"
#include "base/require.hpp"
#include "node-runtime/collectives/call/exchange_call.hpp"
#include "node-runtime/collectives/call/exchange_plan.hpp"
#include "node-runtime/collectives/exchange_core.hpp"
#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/group.hpp"

namespace heddle {

using collectives::ExchangeCall;
using collectives::ExchangeNotes;
using collectives::PartNote;

void ExchangeRound::arrived(Stream& stream) const {
  core_->arrived(operation_, stream);
}

ExchangeRound Exchange::begin() const {
  return {core_, core_->begin()};
}
ExchangeRound Exchange::begin(Stream& stream) const {
  return {core_, core_->begin(&stream)};
}
void Exchange::wait() const {
  core_->wait();
}
bool Exchange::done() const {
  return core_->done();
}
ExchangeReport Exchange::report() const {
  return core_->report();
}

namespace {

/// What each member says when an exchange is made.
struct ExchangeWish {
  std::int64_t outgoing = 0;  ///< parts
  std::int64_t incoming = 0;
  std::int64_t options = 0;  ///< a number for them
  std::int64_t channel = 0;  ///< the first that it has not used
  std::int64_t is_refused = 0;

  static constexpr std::int64_t numbers = 5;
};

ExchangeCall call_of(std::span<const OutgoingPart> outgoing, std::span<const IncomingPart> incoming,
                     const ExchangeOptions& options) {
  ExchangeCall call{{}, {}, options.method, options.receives, options.name};
  for (const OutgoingPart& part : outgoing) call.outgoing.push_back({part.to, part.elements});
  for (const IncomingPart& part : incoming) call.incoming.push_back({part.from, part.elements});
  return call;
}

/// What is wrong with the call on this rank; finds out where its parts lie.
std::optional<Error> trouble_of(ExchangeCall& call, int size,
                                const collectives::RankDevices& devices) {
  try {
    static_cast<void>(collectives::exchange_way_of(call.method));
    static_cast<void>(collectives::receives_of(call.receives));
  } catch (const Error& error) {
    return Error(error.code(), fmt::format("{}: {}", call.describe(), error.what()));
  }
  try {
    collectives::check(call, size);
    collectives::find_lanes(call, devices);
  } catch (const std::exception& error) {
    return as_error(error);
  }
  return std::nullopt;
}

/// Throws on all members where one refuses its call: there why, and elsewhere who and why.
void agree_on_refusals(const Group& group, const std::vector<ExchangeWish>& wishes,
                       const ExchangeCall& call, const std::optional<Error>& trouble) {
  const auto refused =
      std::ranges::find_if(wishes, [](const ExchangeWish& w) { return w.is_refused != 0; });
  if (refused == wishes.end()) return;
  const auto refuser = static_cast<int>(refused - wishes.begin());
  std::array<char, 1024> text{};
  if (group.rank() == refuser) {
    const std::string why = std::string(trouble->what()).substr(0, text.size() - 1);
    std::ranges::copy(why, text.begin());
  }
  group.broadcast({text.data(), static_cast<std::int64_t>(text.size())}, refuser,
                  {.name = "making an exchange"});
  if (trouble) throw collectives::own_copy(*trouble);
  throw Error(ErrorCode::usage,
              fmt::format("rank {} refuses to make {}: {}", refuser, call.describe(), text.data()));
}

/// The notes of all members, of one side.
std::vector<std::vector<PartNote>> gather_notes(const Group& group, std::vector<PartNote> own,
                                                const std::vector<ExchangeWish>& wishes,
                                                std::int64_t ExchangeWish::*count) {
  std::vector<std::vector<PartNote>> notes;
  notes.reserve(wishes.size());
  std::vector<Incoming> rooms;
  for (const ExchangeWish& wish : wishes) {
    std::vector<PartNote>& room = notes.emplace_back(static_cast<std::size_t>(wish.*count));
    rooms.push_back({room.data(), wish.*count * PartNote::numbers, Scalar::int64});
  }
  const auto numbers = static_cast<std::int64_t>(own.size()) * PartNote::numbers;
  group.all_gather({own.data(), numbers, Scalar::int64}, rooms, {.name = "making an exchange"});
  return notes;
}

std::int64_t number_of(const ExchangeCall& call) {
  const std::hash<std::string_view> hash;
  return static_cast<std::int64_t>(collectives::mixed(hash(call.method), hash(call.receives)));
}

}  // namespace

Exchange Group::exchange(std::span<const OutgoingPart> outgoing,
                         std::span<const IncomingPart> incoming,
                         const ExchangeOptions& options) const {
  collectives::GroupCore& group = core();
  ExchangeCall call = call_of(outgoing, incoming, options);
  const std::optional<Error> trouble = trouble_of(call, size(), group.devices());
  const ExchangeWish own{static_cast<std::int64_t>(outgoing.size()),
                         static_cast<std::int64_t>(incoming.size()), number_of(call),
                         group.user_messages()->next_channel(), trouble ? 1 : 0};
  std::vector<ExchangeWish> wishes(static_cast<std::size_t>(size()));
  all_gather({&own, ExchangeWish::numbers, Scalar::int64},
             {wishes.data(), ExchangeWish::numbers, Scalar::int64}, {.name = "making an exchange"});
  std::int64_t channel = 0;
  for (const ExchangeWish& wish : wishes) channel = std::max(channel, wish.channel);
  group.user_messages()->take_channels(static_cast<std::int32_t>(channel) + 1);
  agree_on_refusals(*this, wishes, call, trouble);
  for (std::size_t r = 0; r < wishes.size(); ++r) {
    require(wishes[r].options == wishes.front().options,
            "{}: ranks 0 and {} differ in its method or receives", call.describe(), r);
  }
  const ExchangeNotes notes{
      gather_notes(*this, collectives::notes_of(call.outgoing), wishes, &ExchangeWish::outgoing),
      gather_notes(*this, collectives::notes_of(call.incoming), wishes, &ExchangeWish::incoming)};
  const auto parts = collectives::match(notes, call.describe());
  const collectives::ExchangeMember member{group.planner().own(), group.planner().places(),
                                           group.planner().rates(), &group.devices()};
  try {
    return Exchange(collectives::ExchangeCore::make(
        core_, collectives::plan_exchange(member, call, parts), call.describe(),
        p2p::ChannelId{static_cast<std::int32_t>(channel)}));
  } catch (const std::exception& error) {
    // The other members have the exchange.
    const Error why = as_error(error);
    group.control().fail_all(Error(why.code(), fmt::format("rank {} cannot have what {} needs: {}",
                                                           rank(), call.describe(), why.what())));
    throw;
  }
}

}  // namespace heddle
