#include "node-runtime/collectives/group.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/require.hpp"
#include "base/units.hpp"
#include "node-runtime/collectives/group_core.hpp"

namespace heddle {

using collectives::Call;
using collectives::CollectiveKind;
using collectives::Elements;
using collectives::GroupCore;
using collectives::Rank;
using Clock = std::chrono::steady_clock;

// ---- operations under way --------------------------------------------------------------------

struct Collective::State {
  std::shared_ptr<collectives::Operation> operation;
  collectives::CollectiveChoice choice;
  std::function<void(double seconds)> explain;  ///< may be null
  Clock::time_point begun = Clock::now();
  std::mutex mutex;
  double seconds = 0;  ///< under the mutex; 0: was not found to be over

  void ended() {
    {
      const std::scoped_lock lock(mutex);
      if (seconds > 0) return;
      seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    }
    if (explain) explain(seconds);
  }
};

bool Collective::done() const {
  if (!state_->operation->is_over()) return false;
  state_->ended();
  return true;
}

void Collective::wait() const {
  state_->operation->wait();
  state_->ended();
}

CollectiveReport Collective::report() const {
  require(done(), "Collective::report: the operation is not over");
  CollectiveReport report;
  const std::string& way = state_->operation->way();
  report.algorithm = way.empty() ? state_->choice.text() : way;
  report.predicted_s = state_->choice.seconds_by(way);
  report.seconds = state_->seconds;
  report.order = state_->choice.order;
  report.predicted_ranks_s = state_->choice.seconds_in_order.front();
  report.predicted_places_s = state_->choice.seconds_in_order.back();
  const auto& considered = state_->choice.considered;
  for (std::size_t i = 1; i < considered.size(); ++i) {
    report.others.push_back(
        fmt::format("{}: {:.1f} us", considered[i].text, 1e6 * considered[i].seconds));
  }
  const std::string_view taken =
      way.empty() ? "steps" : std::string_view(way).substr(0, way.find(','));
  for (const auto& other : state_->choice.on_devices) {
    if (other.way == taken) continue;
    report.others.push_back(fmt::format("on devices {}: {}", other.way,
                                        other.lacks.empty()
                                            ? fmt::format("{:.1f} us", 1e6 * other.seconds)
                                            : std::string(other.lacks)));
  }
  const std::string& why_not = state_->operation->why_not();
  if (!why_not.empty()) report.others.push_back(why_not);
  return report;
}

// ---- groups ----------------------------------------------------------------------------------

GroupCore& Group::core() const {
  require(core_ != nullptr, "a group is used on a node that is no member of it");
  return *core_;
}

int Group::rank() const {
  return core().rank();
}
int Group::size() const {
  return core().size();
}

namespace {

/// What each member says when groups are made of one.
struct Wish {
  std::int64_t color = 0;
  std::int64_t key = 0;
  std::int64_t channel = 0;  ///< the first that it has not used
  std::int64_t digest = 0;   ///< of what must be the same on all
  std::int64_t groups = 0;   ///< that its node has
};
constexpr std::int64_t wish_numbers = 5;
constexpr std::int64_t wrong = -2;  ///< digest of a call that makes no sense

std::shared_ptr<GroupCore> make_member(GroupCore& parent, const Wish& own,
                                       const std::vector<Wish>& wishes) {
  const auto of = [&](std::int32_t r) -> const Wish& {
    return wishes[static_cast<std::size_t>(r)];
  };
  std::map<std::int64_t, std::int32_t> colors;
  std::int64_t channel = 0;
  for (const Wish& wish : wishes) {
    require(wish.groups < GroupCore::groups_max,
            "a group is made on a node that has {} already, as many as may be; drop handles of "
            "those that are not used any more",
            wish.groups);
    require(wish.digest != wrong, "Group::subset: the call of a rank makes no sense");
    require(wish.digest == own.digest, "Group::subset: not all ranks give the same ranks");
    channel = std::max(channel, wish.channel);
    if (wish.color >= 0) colors.emplace(wish.color, 0);
  }
  std::int32_t number = 0;
  for (auto& [color, at] : colors) at = number++;
  parent.user_messages()->take_channels(static_cast<std::int32_t>(channel) + number);
  if (own.color < 0) return nullptr;
  std::vector<Rank> members;
  for (std::int32_t r = 0; r < parent.size(); ++r) {
    if (of(r).color == own.color) members.emplace_back(r);
  }
  std::ranges::stable_sort(members, {}, [&](Rank r) { return of(r.value()).key; });
  GroupCore::Options options{
      {},
      Rank{0},
      parent.planner().places().subset(members),
      p2p::ChannelId{static_cast<std::int32_t>(channel) + colors.at(own.color)},
      parent.planner().rates(),
      parent.options().patience,
      parent.options().looks,
      parent.options().yields,
      parent.options().waiting,
      parent.options().have_devices,
      parent.options().copies,
      parent.options().defaults,
      parent.options().explanations};
  for (const Rank r : members) {
    if (r.value() == parent.rank()) {
      options.own = Rank{static_cast<std::int32_t>(options.nodes.size())};
    }
    options.nodes.push_back(parent.options().nodes[static_cast<std::size_t>(r.value())]);
  }
  auto core = GroupCore::make(parent.user_messages(), std::move(options));
  core->set_up_board();
  core->set_trace(parent.options().trace);
  return core;
}

Wish wish_for(std::span<const int> ranks, int own_rank, int size) {
  require(!ranks.empty(), "Group::subset: no rank");
  Wish own{-1, 0, 0, 0, 0};
  std::vector<bool> is_named(static_cast<std::size_t>(size), false);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int rank = ranks[i];
    require(rank >= 0 && rank < size, "Group::subset: rank {}; the group has ranks 0 to {}", rank,
            size - 1);
    require(!is_named[static_cast<std::size_t>(rank)], "Group::subset: rank {} twice", rank);
    is_named[static_cast<std::size_t>(rank)] = true;
    own.digest = (own.digest * 1000003 + rank + 1) % 1000000007;
    if (rank == own_rank) {
      own.color = 0;
      own.key = static_cast<std::int64_t>(i);
    }
  }
  return own;
}

std::shared_ptr<GroupCore> make_part(const Group& group, GroupCore& parent, Wish own) {
  // A call that makes no sense here is thrown when all know.
  own.channel = parent.user_messages()->next_channel();
  own.groups = parent.user_messages()->groups();
  std::vector<Wish> wishes(static_cast<std::size_t>(parent.size()));
  group.all_gather({&own, wish_numbers, Scalar::int64},
                   {wishes.data(), wish_numbers, Scalar::int64}, {.name = "making a group"});
  return make_member(parent, own, wishes);
}

}  // namespace

Group Group::split(int color, int key) const {
  return Group(make_part(*this, core(), {color, key, 0, -1, 0}));
}

Group Group::subset(std::span<const int> ranks) const {
  Wish own{-1, 0, 0, 0, 0};
  std::optional<Error> trouble;
  try {
    own = wish_for(ranks, rank(), size());
  } catch (const Error& error) {
    trouble = error;
    own.digest = wrong;  // the others hear that there is something
  }
  try {
    return Group(make_part(*this, core(), own));
  } catch (const Error&) {
    if (trouble) throw Error(*trouble);
    throw;
  }
}

Collective Group::begin(Call call) const {
  GroupCore::Begun begun = core().begin(std::move(call));
  auto state = std::make_shared<Collective::State>();
  state->operation = std::move(begun.operation);
  state->choice = std::move(begun.choice);
  state->explain = std::move(begun.explain);
  return Collective(std::move(state));
}

void Group::begin_on(Call call, Stream& stream) const {
  static_cast<void>(core().begin(std::move(call), &stream));
}

std::string Group::describe_memory() const {
  return core().describe_memory();
}

void Group::release(const void* memory) const {
  const auto messages = core().user_messages();
  static_cast<void>(messages->wait(messages->release(memory)));
}

}  // namespace heddle
