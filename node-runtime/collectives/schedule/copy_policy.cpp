#include "node-runtime/collectives/schedule/copy_policy.hpp"

#include <algorithm>
#include <string_view>

#include "base/assert.hpp"

namespace heddle::collectives {
namespace {

constexpr std::array<std::string_view, 8> state_names{"INIT",     "RTS",     "IPC_ASGN", "HS_ASGN",
                                                      "IPC_INIT", "HS_INIT", "IPC_CMP",  "HS_CMP"};

CopyState state_of(CopyState mapped, CopyType type) {
  return static_cast<CopyState>(static_cast<int>(mapped) + (type == CopyType::staged ? 1 : 0));
}

bool has_ended(CopyState state) {
  return state == CopyState::mapped_ended || state == CopyState::staged_ended;
}

bool is_under_way(CopyState state) {
  return state >= CopyState::mapped_assigned && !has_ended(state);
}

CopyType type_of(CopyState state) {
  const auto from = static_cast<int>(CopyState::mapped_assigned);
  return (static_cast<int>(state) - from) % 2 == 0 ? CopyType::mapped : CopyType::staged;
}

}  // namespace

std::string_view name_of(CopyState state) {
  return state_names.at(static_cast<std::size_t>(state));
}

CopyPolicy CopyPolicy::fixed(std::int32_t staged) {
  CopyPolicy policy;
  policy.staged_ = staged;
  return policy;
}

CopyPolicy CopyPolicy::dynamic() {
  CopyPolicy policy;
  policy.is_dynamic_ = true;
  return policy;
}

CopyPolicy CopyPolicy::of(Copies copies, CollectiveKind kind, std::int32_t ranks,
                          std::int64_t bytes, const CopyTable& known) {
  const auto staged = known.staged(kind, ranks, bytes);
  switch (copies) {
    case Copies::automatic: {
      if (staged) return fixed(*staged);
      const auto faster = known.faster(bytes);
      return faster ? fixed(*faster == CopyType::staged ? ranks : 0) : dynamic();
    }
    case Copies::by_speed:
      return dynamic();
    case Copies::by_table:
      return fixed(staged ? *staged
                          : published_copy_table().staged(kind, ranks, bytes).value_or(0));
    case Copies::mapped:
      return fixed(0);
    case Copies::staged:
      return fixed(ranks);
  }
  return dynamic();
}

CopyStage::CopyStage(CopyPolicy& policy, std::int32_t copies, Repeats repeats)
    : policy_(policy), copies_(static_cast<std::size_t>(copies)), repeats_(repeats), left_(copies) {
  if (!policy.is_dynamic()) {
    granted_.assign(static_cast<std::size_t>(std::min(policy.staged(), copies)), CopyType::staged);
    granted_.resize(static_cast<std::size_t>(copies), CopyType::mapped);
    return;
  }
  const bool has_mapped = policy.has_ended(CopyType::mapped);
  has_one_type_ = copies == 1 || has_mapped != policy.has_ended(CopyType::staged);
  if (has_one_type_) {
    type_ = has_mapped || !policy.has_any_ended() ? CopyType::mapped : CopyType::staged;
  } else {
    granted_ = {CopyType::staged, CopyType::mapped};
  }
}

CopyStage::Assignment CopyStage::assign(std::int32_t copy, CopyType type) {
  const CopyType possible = at(copy).may_map ? type : CopyType::staged;
  at(copy).state = state_of(CopyState::mapped_assigned, possible);
  return {copy, possible, false};
}

CopyStage::Assignments CopyStage::assign_waiting() {
  Assignments made;
  while (!waiting_.empty() && (has_one_type_ || !granted_.empty())) {
    CopyType type = type_;
    if (!has_one_type_) {
      type = granted_.front();
      granted_.pop_front();
    }
    made.push_back(assign(waiting_.front(), type));
    waiting_.pop_front();
    ++assigned_;
  }
  return made;
}

CopyStage::Assignments CopyStage::arrived(std::int32_t copy, bool may_map) {
  HEDDLE_CHECK(state(copy) == CopyState::initial, "copy {} arrives in state {}", copy,
               name_of(state(copy)));
  at(copy).state = CopyState::ready;
  at(copy).may_map = may_map;
  waiting_.push_back(copy);
  return assign_waiting();
}

void CopyStage::begun(std::int32_t copy) {
  if (state(copy) != CopyState::mapped_assigned && state(copy) != CopyState::staged_assigned)
    return;
  at(copy).state = state_of(CopyState::mapped_begun, type_of(state(copy)));
}

CopyStage::Assignments CopyStage::ended(std::int32_t copy, CopyType type) {
  policy_.ended(type);
  if (has_ended(state(copy))) return {};
  HEDDLE_CHECK(is_under_way(state(copy)), "copy {} ends in state {}", copy, name_of(state(copy)));
  at(copy).state = state_of(CopyState::mapped_ended, type);
  --left_;
  ++ended_.at(static_cast<std::size_t>(type));
  if (!policy_.is_dynamic()) return {};
  const std::int32_t ahead =
      ended_.at(static_cast<std::size_t>(type)) - ended_.at(static_cast<std::size_t>(other(type)));
  const std::int32_t more = std::min(1 << std::clamp(ahead, 0, 20),
                                     static_cast<std::int32_t>(copies_.size()) - assigned_);
  if (!has_one_type_) granted_.insert(granted_.end(), static_cast<std::size_t>(more), type);
  Assignments made = assign_waiting();
  repeat_last(made);
  return made;
}

/// Phase 3 of 002 section 5.2.2.
void CopyStage::repeat_last(Assignments& made) {
  if (repeats_ == Repeats::never || left_ != 1 || std::cmp_less(assigned_, copies_.size())) return;
  const auto last =
      std::ranges::find_if(copies_, [](const Copy& copy) { return is_under_way(copy.state); });
  HEDDLE_CHECK(last != copies_.end(), "{} copy is left, and none is under way", left_);
  const CopyType type = type_of(last->state);
  if (last->is_again || policy_.has_ended(type) || !policy_.has_ended(other(type))) return;
  if (type == CopyType::staged && !last->may_map) return;
  last->is_again = true;
  made.push_back({static_cast<std::int32_t>(last - copies_.begin()), other(type), true});
}

CopyStage::Assignments CopyStage::refused(std::int32_t copy) {
  at(copy).may_map = false;
  if (at(copy).is_again || has_ended(state(copy))) return {};
  return {assign(copy, CopyType::staged)};
}

}  // namespace heddle::collectives
