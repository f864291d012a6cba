#include "node-runtime/collectives/schedule/check.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/assert.hpp"
#include "node-runtime/collectives/schedule/bracket.hpp"

namespace heddle::collectives {

// ---- values ------------------------------------------------------------------------------------

Value Values::input(Rank rank, std::int32_t block) {
  return number_of({rank.value(), block, true});
}

Value Values::reduced(Value left, Value right) {
  return number_of({left.value(), right.value(), false});
}

Value Values::number_of(const Origin& origin) {
  const auto [entry, is_new] =
      numbers_.try_emplace(origin, static_cast<std::int32_t>(origins_.size()));
  if (is_new) origins_.push_back(origin);
  return entry->second;
}

std::string Values::bracket(Value value) const {
  const Origin& origin = origins_.at(static_cast<std::size_t>(value.value()));
  if (origin.is_input) return fmt::format("{}", origin.left);
  return fmt::format("({} {})", bracket(Value{origin.left}), bracket(Value{origin.right}));
}

std::string Values::text(Value value) const {
  Value leaf = value;
  const auto origin = [&](Value of) { return origins_.at(static_cast<std::size_t>(of.value())); };
  while (!origin(leaf).is_input) leaf = Value{origin(leaf).left};
  return fmt::format("{} of block {}", bracket(value), origin(leaf).right);
}

// ---- schedules ---------------------------------------------------------------------------------

namespace {

/// A step of a rank.
struct StepId {
  std::int32_t rank = 0;
  std::int32_t step = 0;
  friend auto operator<=>(const StepId&, const StepId&) = default;
};

/// Memory of a rank: a spot, and in the output or input a block of it.
using Cell = std::pair<Spot, std::int32_t>;

class Check {
 public:
  Check(const std::vector<Schedule>& schedules, std::int32_t blocks)
      : schedules_(schedules), blocks_(blocks) {}

  std::string run(const WantedValue& wanted) {
    for (std::int32_t r = 0; r < ranks() && trouble_.empty(); ++r) look_at(r);
    if (trouble_.empty()) pair_messages();
    if (trouble_.empty()) run_steps();
    if (trouble_.empty()) compare(wanted);
    return trouble_;
  }

 private:
  [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(schedules_.size()); }
  [[nodiscard]] const Schedule& schedule(std::int32_t rank) const {
    return schedules_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] const Step& step(StepId id) const {
    return schedule(id.rank).steps[static_cast<std::size_t>(id.step)];
  }
  template <class... Parts>
  void fail(StepId id, fmt::format_string<Parts...> what, Parts&&... parts) {
    if (!trouble_.empty()) return;
    trouble_ =
        fmt::format("rank {}, step {}: {}\n{}", id.rank, id.step,
                    fmt::format(what, std::forward<Parts>(parts)...), schedule(id.rank).describe());
  }
  [[nodiscard]] static Cell cell_of(const Spot& spot, std::int32_t block) {
    const bool is_slot =
        spot.memory == Spot::Memory::slot || spot.memory == Spot::Memory::host_cache;
    return {spot, is_slot ? 0 : block};
  }

  void check_spot(StepId id, const Spot& spot) {
    const bool is_slot = spot.memory == Spot::Memory::slot;
    if (is_slot && (spot.slot < 0 || spot.slot >= schedule(id.rank).slots)) {
      fail(id, "slot {} of {}", spot.slot, schedule(id.rank).slots);
    }
    if (spot.memory != Spot::Memory::host_cache) return;
    if (spot.slot < 0 || spot.slot >= schedule(id.rank).host_slots) {
      fail(id, "host slot {} of {}", spot.slot, schedule(id.rank).host_slots);
    }
    if (step(id).kind == Step::Kind::reduce) fail(id, "it reduces in the host cache");
  }

  /// The shape of a step, without the others.
  void check_shape(StepId id) {
    const Step& one = step(id);
    const std::size_t inputs = one.from.size();
    const bool is_message = one.kind == Step::Kind::send || one.kind == Step::Kind::receive;
    const bool has_inputs = one.kind == Step::Kind::receive  ? inputs == 0
                            : one.kind == Step::Kind::reduce ? inputs >= 2
                                                             : inputs == 1;
    if (!has_inputs) fail(id, "it reads {} spots", inputs);
    if (one.block < 0 || one.block >= blocks_) fail(id, "block {} of {}", one.block, blocks_);
    const std::int32_t peer = one.peer.value();
    if (is_message && (peer < 0 || peer >= ranks() || peer == id.rank)) {
      fail(id, "its peer is rank {} of {}", peer, ranks());
    }
    for (const Spot& spot : one.from) check_spot(id, spot);
    if (one.kind == Step::Kind::send) return;
    check_spot(id, one.to);
    if (one.to.memory == Spot::Memory::input) fail(id, "it writes into the input");
  }

  /// What a rank's steps say of each other.
  void look_at(std::int32_t rank) {
    std::map<Cell, std::int32_t> writers;
    // Steps that have ended whenever step s runs.
    std::vector<std::vector<bool>> before;
    const auto count = static_cast<std::int32_t>(schedule(rank).steps.size());
    for (std::int32_t s = 0; s < count; ++s) {
      const StepId id{rank, s};
      check_shape(id);
      std::vector<bool>& mine = before.emplace_back(static_cast<std::size_t>(count), false);
      for (const std::int32_t earlier : step(id).after) {
        if (earlier < 0 || earlier >= s) return fail(id, "it comes after step {}", earlier);
        const std::vector<bool>& theirs = before[static_cast<std::size_t>(earlier)];
        for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = mine[k] || theirs[k];
        mine[static_cast<std::size_t>(earlier)] = true;
      }
      for (const Spot& spot : step(id).from) {
        if (spot.memory == Spot::Memory::input) continue;
        const auto writer = writers.find(cell_of(spot, step(id).block));
        const bool is_there =
            writer != writers.end() && mine[static_cast<std::size_t>(writer->second)];
        if (!is_there) return fail(id, "it reads what no step before it has written");
        if (step({rank, writer->second}).block != step(id).block) {
          return fail(id, "it reads a slot that has block {}", step({rank, writer->second}).block);
        }
      }
      if (step(id).is_joined) check_joined(id);
      if (step(id).kind == Step::Kind::send) continue;
      if (!writers.emplace(cell_of(step(id).to, step(id).block), s).second) {
        return fail(id, "it writes what another step has written");
      }
    }
  }

  /// A joined step travels with the one before it.
  void check_joined(StepId id) {
    const bool is_first = id.step == 0;
    const Step& before = step({id.rank, is_first ? 0 : id.step - 1});
    const bool is_message =
        step(id).kind == Step::Kind::send || step(id).kind == Step::Kind::receive;
    if (is_first || !is_message || before.kind != step(id).kind || before.peer != step(id).peer) {
      return fail(id, "it is joined to no message");
    }
    if (std::ranges::any_of(step(id).after, [&](std::int32_t earlier) {
          return earlier >= message_of(id).first.step;
        })) {
      fail(id, "it comes after a step of its own message");
    }
  }

  /// The first step of the message that a step travels in, and the one behind the last.
  [[nodiscard]] std::pair<StepId, StepId> message_of(StepId id) const {
    StepId first = id;
    while (step(first).is_joined) --first.step;
    StepId end{id.rank, id.step + 1};
    const auto count = static_cast<std::int32_t>(schedule(id.rank).steps.size());
    while (end.step < count && step(end).is_joined) ++end.step;
    return {first, end};
  }

  void pair_messages() {
    using Pair = std::pair<std::int32_t, std::int32_t>;
    std::map<Pair, std::vector<StepId>> sends;
    std::map<Pair, std::vector<StepId>> receives;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      for (std::int32_t s = 0; s < static_cast<std::int32_t>(schedule(r).steps.size()); ++s) {
        const Step& one = step({r, s});
        if (one.kind == Step::Kind::send) sends[{r, one.peer.value()}].push_back({r, s});
        if (one.kind == Step::Kind::receive) receives[{one.peer.value(), r}].push_back({r, s});
      }
    }
    for (const auto& [pair, from] : sends) {
      const std::vector<StepId>& to = receives[pair];
      if (to.size() != from.size()) {
        return fail(from.front(), "rank {} receives {} messages of rank {}, which sends {}",
                    pair.second, to.size(), pair.first, from.size());
      }
      for (std::size_t k = 0; k < from.size(); ++k) {
        if (step(from[k]).block != step(to[k]).block) {
          return fail(to[k], "it receives block {}, and rank {} sends block {}", step(to[k]).block,
                      pair.first, step(from[k]).block);
        }
        if (step(from[k]).is_joined != step(to[k]).is_joined) {
          return fail(to[k], "rank {} sends it in another message", pair.first);
        }
        sender_of_[to[k]] = from[k];
      }
      receives.erase(pair);
    }
    for (const auto& [pair, to] : receives) {
      if (!to.empty()) return fail(to.front(), "rank {} does not send that", pair.first);
    }
  }

  [[nodiscard]] Value read(StepId id, const Spot& spot) {
    if (spot.memory == Spot::Memory::input) return values_.input(Rank{id.rank}, step(id).block);
    return memory_.at({id.rank, cell_of(spot, step(id).block)});
  }

  void run_step(StepId id) {
    const Step& one = step(id);
    switch (one.kind) {
      case Step::Kind::send:
        sent_.emplace(id, read(id, one.from.front()));
        return;
      case Step::Kind::receive:
        memory_[{id.rank, cell_of(one.to, one.block)}] = sent_.at(sender_of_.at(id));
        return;
      case Step::Kind::copy:
      case Step::Kind::reduce:
        break;
    }
    const Bracket bracket(static_cast<std::int32_t>(one.from.size()));
    memory_[{id.rank, cell_of(one.to, one.block)}] = value_of(id, bracket.all());
  }

  /// The value of a range of what a step reads.
  [[nodiscard]] Value value_of(StepId id, const RankRange& range) {
    if (range.size() == 1) {
      return read(id, step(id).from[static_cast<std::size_t>(range.begin.value())]);
    }
    const Value left = value_of(id, Bracket::left(range));
    return values_.reduced(left, value_of(id, Bracket::right(range)));
  }

  /// A message leaves when all of it is there.
  template <class Done>
  [[nodiscard]] bool has_all_before(StepId id, const Done& done) const {
    const auto [first, end] = step(id).kind == Step::Kind::send
                                  ? message_of(id)
                                  : std::pair(id, StepId{id.rank, id.step + 1});
    for (StepId part = first; part.step < end.step; ++part.step) {
      const bool is_ready = std::ranges::all_of(step(part).after, [&](std::int32_t b) {
        return done({id.rank, b});
      });
      if (!is_ready) return false;
    }
    return true;
  }

  /// Each rank as far as it comes; a step that never runs is in a circle.
  void run_steps() {
    std::vector<std::vector<bool>> has_run;
    std::size_t left = 0;
    for (const Schedule& one : schedules_) {
      has_run.emplace_back(one.steps.size(), false);
      left += one.steps.size();
    }
    const auto done = [&](StepId id) {
      return static_cast<bool>(
          has_run[static_cast<std::size_t>(id.rank)][static_cast<std::size_t>(id.step)]);
    };
    std::optional<StepId> stuck;
    for (bool advances = true; advances && left > 0;) {
      advances = false;
      stuck.reset();
      for (std::int32_t r = 0; r < ranks(); ++r) {
        for (std::int32_t s = 0; s < static_cast<std::int32_t>(schedule(r).steps.size()); ++s) {
          const StepId id{r, s};
          if (done(id)) continue;
          const Step& one = step(id);
          const bool may_run = has_all_before(id, done) &&
                               (one.kind != Step::Kind::receive || done(sender_of_.at(id)));
          if (!may_run) {
            if (!stuck) stuck = id;
            continue;
          }
          run_step(id);
          has_run[static_cast<std::size_t>(r)][static_cast<std::size_t>(s)] = true;
          --left;
          advances = true;
        }
      }
    }
    if (left > 0) fail(*stuck, "it waits for itself, by way of other ranks");
  }

  void compare(const WantedValue& wanted) {
    for (std::int32_t r = 0; r < ranks(); ++r) {
      for (std::int32_t b = 0; b < blocks_; ++b) {
        const std::optional<Value> value = wanted(Rank{r}, b, values_);
        if (!value) continue;
        const auto found = memory_.find({r, {Spot::in_output(), b}});
        if (found != memory_.end() && found->second == *value) continue;
        trouble_ = fmt::format("rank {}: block {} of the output has {}, wanted is {}\n{}", r, b,
                               found == memory_.end() ? "nothing" : values_.text(found->second),
                               values_.text(*value), schedule(r).describe());
        return;
      }
    }
  }

  const std::vector<Schedule>& schedules_;
  std::int32_t blocks_;
  std::string trouble_;
  Values values_;
  std::map<StepId, StepId> sender_of_;  ///< by receive
  std::map<StepId, Value> sent_;
  std::map<std::pair<std::int32_t, Cell>, Value> memory_;
};

}  // namespace

std::string check_schedules(const std::vector<Schedule>& schedules, std::int32_t blocks,
                            const WantedValue& wanted) {
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    HEDDLE_CHECK(schedules[r].rank == Rank{static_cast<std::int32_t>(r)},
                 "the schedule of rank {} is number {}", schedules[r].rank.value(), r);
  }
  return Check(schedules, blocks).run(wanted);
}

}  // namespace heddle::collectives
