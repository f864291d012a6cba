#include "node-runtime/collectives/group.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
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
  report.algorithm = state_->choice.text();
  report.predicted_s = state_->choice.seconds;
  report.seconds = state_->seconds;
  report.order = state_->choice.order;
  report.predicted_ranks_s = state_->choice.seconds_in_order.front();
  report.predicted_places_s = state_->choice.seconds_in_order.back();
  const auto& considered = state_->choice.considered;
  for (std::size_t i = 1; i < considered.size(); ++i) {
    report.others.push_back(
        fmt::format("{}: {:.1f} us", considered[i].text, 1e6 * considered[i].seconds));
  }
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
      parent.options().defaults,
      parent.options().explanations,
      parent.options().is_driven};
  for (const Rank r : members) {
    if (r.value() == parent.rank()) {
      options.own = Rank{static_cast<std::int32_t>(options.nodes.size())};
    }
    options.nodes.push_back(parent.options().nodes[static_cast<std::size_t>(r.value())]);
  }
  auto core = GroupCore::make(parent.user_messages(), std::move(options));
  core->set_up_board();
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

namespace {

std::vector<Elements> all_of(const auto& list) {
  return {list.begin(), list.end()};
}

/// Moves elements: one buffer of each side.
Call moving(CollectiveKind kind, std::vector<Elements> inputs, std::vector<Elements> outputs,
            int root, const CollectiveOptions& options) {
  Call call;
  call.kind = kind;
  call.root = root;
  call.inputs = std::move(inputs);
  call.outputs = std::move(outputs);
  call.options = options;
  return call;
}

Call listed(Call call) {
  call.is_listed = true;
  return call;
}

Call in_place(Call call) {
  call.is_in_place = true;
  return call;
}

Call reducing(Call call, ReduceOperation operation) {
  call.operation = operation;
  return call;
}

}  // namespace

// ---- the operations --------------------------------------------------------------------------

namespace {

Call barrier_call(const CollectiveOptions& options) {
  return moving(CollectiveKind::barrier, {}, {}, 0, options);
}

Call broadcast_call(int own, const Incoming& elements, int root, const CollectiveOptions& options) {
  std::vector<Elements> all{elements};
  return own == root ? moving(CollectiveKind::broadcast, std::move(all), {}, root, options)
                     : moving(CollectiveKind::broadcast, {}, std::move(all), root, options);
}

Call scatter_call(int own, const Outgoing& from, const Incoming& to, int root,
                  const CollectiveOptions& options) {
  std::vector<Elements> inputs;
  if (own == root) inputs.emplace_back(from);
  return moving(CollectiveKind::scatter, std::move(inputs), {to}, root, options);
}

Call scatter_list_call(int own, std::span<const Outgoing> from, const Incoming& to, int root,
                       const CollectiveOptions& options) {
  std::vector<Elements> inputs;
  if (own == root) inputs = all_of(from);
  return listed(moving(CollectiveKind::scatter, std::move(inputs), {to}, root, options));
}

Call gather_call(int own, const Outgoing& from, const Incoming& to, int root,
                 const CollectiveOptions& options) {
  std::vector<Elements> outputs;
  if (own == root) outputs.emplace_back(to);
  return moving(CollectiveKind::gather, {from}, std::move(outputs), root, options);
}

Call gather_list_call(int own, const Outgoing& from, std::span<const Incoming> to, int root,
                      const CollectiveOptions& options) {
  std::vector<Elements> outputs;
  if (own == root) outputs = all_of(to);
  return listed(moving(CollectiveKind::gather, {from}, std::move(outputs), root, options));
}

Call all_gather_call(const Outgoing& from, const Incoming& to, const CollectiveOptions& options) {
  return moving(CollectiveKind::all_gather, {from}, {to}, 0, options);
}

Call all_gather_in_place_call(const Incoming& all, const CollectiveOptions& options) {
  return in_place(moving(CollectiveKind::all_gather, {}, {all}, 0, options));
}

Call all_gather_list_call(const Outgoing& from, std::span<const Incoming> to,
                          const CollectiveOptions& options) {
  return listed(moving(CollectiveKind::all_gather, {from}, all_of(to), 0, options));
}

Call all_to_all_call(const Outgoing& from, const Incoming& to, const CollectiveOptions& options) {
  return moving(CollectiveKind::all_to_all, {from}, {to}, 0, options);
}

Call all_to_all_list_call(std::span<const Outgoing> from, std::span<const Incoming> to,
                          const CollectiveOptions& options) {
  return listed(moving(CollectiveKind::all_to_all, all_of(from), all_of(to), 0, options));
}

Call reduce_call(int own, const Outgoing& from, const Incoming& to, ReduceOperation operation,
                 int root, const CollectiveOptions& options) {
  std::vector<Elements> outputs;
  if (own == root) outputs.emplace_back(to);
  return reducing(moving(CollectiveKind::reduce, {from}, std::move(outputs), root, options),
                  operation);
}

Call all_reduce_call(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                     const CollectiveOptions& options) {
  return reducing(moving(CollectiveKind::all_reduce, {from}, {to}, 0, options), operation);
}

Call all_reduce_in_place_call(const Incoming& all, ReduceOperation operation,
                              const CollectiveOptions& options) {
  return in_place(reducing(moving(CollectiveKind::all_reduce, {}, {all}, 0, options), operation));
}

Call reduce_scatter_call(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                         const CollectiveOptions& options) {
  return reducing(moving(CollectiveKind::reduce_scatter, {from}, {to}, 0, options), operation);
}

Call reduce_scatter_counts_call(const Outgoing& from, const Incoming& to,
                                std::span<const std::int64_t> counts, ReduceOperation operation,
                                const CollectiveOptions& options) {
  Call call = reducing(moving(CollectiveKind::reduce_scatter, {from}, {to}, 0, options), operation);
  require(!counts.empty(), "reduce_scatter: no counts");
  call.counts.assign(counts.begin(), counts.end());
  return call;
}

Call scan_call(const Outgoing& from, const Incoming& to, ReduceOperation operation,
               const CollectiveOptions& options) {
  return reducing(moving(CollectiveKind::scan, {from}, {to}, 0, options), operation);
}

Call scan_in_place_call(const Incoming& all, ReduceOperation operation,
                        const CollectiveOptions& options) {
  return in_place(reducing(moving(CollectiveKind::scan, {}, {all}, 0, options), operation));
}

Call exclusive_scan_call(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                         const CollectiveOptions& options) {
  return reducing(moving(CollectiveKind::exclusive_scan, {from}, {to}, 0, options), operation);
}

}  // namespace

void Group::barrier(const CollectiveOptions& options) const {
  core().run(barrier_call(options));
}
Collective Group::begin_barrier(const CollectiveOptions& options) const {
  return begin(barrier_call(options));
}

void Group::broadcast(const Incoming& elements, int root, const CollectiveOptions& options) const {
  core().run(broadcast_call(rank(), elements, root, options));
}
Collective Group::begin_broadcast(const Incoming& elements, int root,
                                  const CollectiveOptions& options) const {
  return begin(broadcast_call(rank(), elements, root, options));
}

void Group::scatter(const Outgoing& from, const Incoming& to, int root,
                    const CollectiveOptions& options) const {
  core().run(scatter_call(rank(), from, to, root, options));
}
Collective Group::begin_scatter(const Outgoing& from, const Incoming& to, int root,
                                const CollectiveOptions& options) const {
  return begin(scatter_call(rank(), from, to, root, options));
}

void Group::scatter(std::span<const Outgoing> from, const Incoming& to, int root,
                    const CollectiveOptions& options) const {
  core().run(scatter_list_call(rank(), from, to, root, options));
}
Collective Group::begin_scatter(std::span<const Outgoing> from, const Incoming& to, int root,
                                const CollectiveOptions& options) const {
  return begin(scatter_list_call(rank(), from, to, root, options));
}

void Group::gather(const Outgoing& from, const Incoming& to, int root,
                   const CollectiveOptions& options) const {
  core().run(gather_call(rank(), from, to, root, options));
}
Collective Group::begin_gather(const Outgoing& from, const Incoming& to, int root,
                               const CollectiveOptions& options) const {
  return begin(gather_call(rank(), from, to, root, options));
}

void Group::gather(const Outgoing& from, std::span<const Incoming> to, int root,
                   const CollectiveOptions& options) const {
  core().run(gather_list_call(rank(), from, to, root, options));
}
Collective Group::begin_gather(const Outgoing& from, std::span<const Incoming> to, int root,
                               const CollectiveOptions& options) const {
  return begin(gather_list_call(rank(), from, to, root, options));
}

void Group::all_gather(const Outgoing& from, const Incoming& to,
                       const CollectiveOptions& options) const {
  core().run(all_gather_call(from, to, options));
}
Collective Group::begin_all_gather(const Outgoing& from, const Incoming& to,
                                   const CollectiveOptions& options) const {
  return begin(all_gather_call(from, to, options));
}

void Group::all_gather(const Incoming& all, const CollectiveOptions& options) const {
  core().run(all_gather_in_place_call(all, options));
}
Collective Group::begin_all_gather(const Incoming& all, const CollectiveOptions& options) const {
  return begin(all_gather_in_place_call(all, options));
}

void Group::all_gather(const Outgoing& from, std::span<const Incoming> to,
                       const CollectiveOptions& options) const {
  core().run(all_gather_list_call(from, to, options));
}
Collective Group::begin_all_gather(const Outgoing& from, std::span<const Incoming> to,
                                   const CollectiveOptions& options) const {
  return begin(all_gather_list_call(from, to, options));
}

void Group::all_to_all(const Outgoing& from, const Incoming& to,
                       const CollectiveOptions& options) const {
  core().run(all_to_all_call(from, to, options));
}
Collective Group::begin_all_to_all(const Outgoing& from, const Incoming& to,
                                   const CollectiveOptions& options) const {
  return begin(all_to_all_call(from, to, options));
}

void Group::all_to_all(std::span<const Outgoing> from, std::span<const Incoming> to,
                       const CollectiveOptions& options) const {
  core().run(all_to_all_list_call(from, to, options));
}
Collective Group::begin_all_to_all(std::span<const Outgoing> from, std::span<const Incoming> to,
                                   const CollectiveOptions& options) const {
  return begin(all_to_all_list_call(from, to, options));
}

void Group::reduce(const Outgoing& from, const Incoming& to, ReduceOperation operation, int root,
                   const CollectiveOptions& options) const {
  core().run(reduce_call(rank(), from, to, operation, root, options));
}
Collective Group::begin_reduce(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                               int root, const CollectiveOptions& options) const {
  return begin(reduce_call(rank(), from, to, operation, root, options));
}

void Group::all_reduce(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                       const CollectiveOptions& options) const {
  core().run(all_reduce_call(from, to, operation, options));
}
Collective Group::begin_all_reduce(const Outgoing& from, const Incoming& to,
                                   ReduceOperation operation,
                                   const CollectiveOptions& options) const {
  return begin(all_reduce_call(from, to, operation, options));
}

void Group::all_reduce(const Incoming& all, ReduceOperation operation,
                       const CollectiveOptions& options) const {
  core().run(all_reduce_in_place_call(all, operation, options));
}
Collective Group::begin_all_reduce(const Incoming& all, ReduceOperation operation,
                                   const CollectiveOptions& options) const {
  return begin(all_reduce_in_place_call(all, operation, options));
}

void Group::reduce_scatter(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                           const CollectiveOptions& options) const {
  core().run(reduce_scatter_call(from, to, operation, options));
}
Collective Group::begin_reduce_scatter(const Outgoing& from, const Incoming& to,
                                       ReduceOperation operation,
                                       const CollectiveOptions& options) const {
  return begin(reduce_scatter_call(from, to, operation, options));
}

void Group::reduce_scatter(const Outgoing& from, const Incoming& to,
                           std::span<const std::int64_t> counts, ReduceOperation operation,
                           const CollectiveOptions& options) const {
  core().run(reduce_scatter_counts_call(from, to, counts, operation, options));
}
Collective Group::begin_reduce_scatter(const Outgoing& from, const Incoming& to,
                                       std::span<const std::int64_t> counts,
                                       ReduceOperation operation,
                                       const CollectiveOptions& options) const {
  return begin(reduce_scatter_counts_call(from, to, counts, operation, options));
}

void Group::scan(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                 const CollectiveOptions& options) const {
  core().run(scan_call(from, to, operation, options));
}
Collective Group::begin_scan(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                             const CollectiveOptions& options) const {
  return begin(scan_call(from, to, operation, options));
}

void Group::scan(const Incoming& all, ReduceOperation operation,
                 const CollectiveOptions& options) const {
  core().run(scan_in_place_call(all, operation, options));
}
Collective Group::begin_scan(const Incoming& all, ReduceOperation operation,
                             const CollectiveOptions& options) const {
  return begin(scan_in_place_call(all, operation, options));
}

void Group::exclusive_scan(const Outgoing& from, const Incoming& to, ReduceOperation operation,
                           const CollectiveOptions& options) const {
  core().run(exclusive_scan_call(from, to, operation, options));
}
Collective Group::begin_exclusive_scan(const Outgoing& from, const Incoming& to,
                                       ReduceOperation operation,
                                       const CollectiveOptions& options) const {
  return begin(exclusive_scan_call(from, to, operation, options));
}

}  // namespace heddle
