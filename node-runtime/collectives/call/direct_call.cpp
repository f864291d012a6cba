#include "node-runtime/collectives/call/direct_call.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "node-runtime/collectives/call/direct_offer.hpp"
#include "node-runtime/collectives/call/direct_share.hpp"
#include "node-runtime/collectives/execution/seal.hpp"

namespace heddle::collectives {

namespace {

/// Whether one who does the work could.
struct Answer {
  bool could = false;
  std::array<char, 191> why{};  ///< if not; ends with a zero
};

/// A chore that does nothing unless `is_needed` says, when it begins, that it is.
Chore only_if(Chore chore, std::function<bool()> is_needed) {
  return {std::move(chore.what), [begin = std::move(chore.begin), is_needed = std::move(is_needed)](
                                     Courier& courier, std::int64_t ticket) {
            return !is_needed() || begin(courier, ticket);
          }};
}
std::vector<Stage> only_if(std::vector<Stage> stages, const std::function<bool()>& is_needed) {
  for (Stage& stage : stages) {
    for (Chore& chore : stage) chore = only_if(std::move(chore), is_needed);
  }
  return stages;
}

/// An operation on its direct way, as one rank sees it: by one thread at a time, which has the
/// operation's claim.
class DirectWay : public std::enable_shared_from_this<DirectWay> {
 public:
  DirectWay(const Call& call, DirectRank rank, const DirectMemory& memory, const Task& task)
      : rank_(std::move(rank)),
        memory_(memory),
        operation_(task.operation),
        scalar_(task.scalar),
        reduces_(call.reduces()),
        seal_(mixed(mixed(task.seal, static_cast<std::uint64_t>(memory.block_bytes)),
                    memory.signature)),
        jobs_(direct_jobs(call.kind, ranks(), Rank{call.root}, call.is_in_place)),
        what_(call.describe()),
        offers_(static_cast<std::size_t>(ranks())),
        answers_(static_cast<std::size_t>(ranks())),
        heard_packed_(static_cast<std::size_t>(ranks())) {
    rank_.known->begins(memory_.number);
  }
  DirectWay(const DirectWay&) = delete;
  DirectWay& operator=(const DirectWay&) = delete;
  ~DirectWay() { rank_.known->ended(memory_.number); }

  [[nodiscard]] std::vector<Stage> stages() {
    std::vector<Stage> all{referring(), here([this] { make_offer(); }), telling_all(),
                           here([this] { decide(); })};
    add(all, packing(false));
    add(all, {telling_packed(),
              {working(Part::trial)},
              answering(Part::trial),
              here([this] { hear(Part::trial); }),
              {working(Part::work)},
              answering(Part::work),
              here([this] { hear(Part::work); })});
    add(all, packing(true));
    return all;
  }
  [[nodiscard]] bool is_done() const { return is_done_; }
  /// When the stages are over: the output's elements are where they lie.
  [[nodiscard]] bool is_done_in_rows() const { return is_done_ && rows_.has_value(); }
  /// When the stages are over: why they have not done it; empty: they have.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// Then: whether all ranks' memory is on one device, which cannot map it.
  [[nodiscard]] bool shares_one_device() const { return workers_.size() == 1; }

 private:
  /// With several devices it is tried first whether all can map what they need.
  enum class Part : std::uint8_t { trial, work };
  /// What a message between two ranks says.
  enum Place : std::uint8_t { offer_place, trial_place, work_place, packed_place };

  [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(rank_.nodes.size()); }
  [[nodiscard]] std::int32_t own() const { return rank_.own.value(); }
  [[nodiscard]] DirectOffer& offer(std::int32_t rank) {
    return offers_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] bool is_worker(std::int32_t rank) const {
    return std::ranges::find(workers_, rank) != workers_.end();
  }

  Stage here(std::function<void()> work) {
    return {{"memory of other ranks",
             [self = shared_from_this(), work = std::move(work)](Courier&, std::int64_t) {
               work();
               return true;
             }}};
  }

  static void add(std::vector<Stage>& to, std::vector<Stage> stages) {
    std::ranges::move(stages, std::back_inserter(to));
  }

  /// Packs where rows are not taken; `behind`: where they were, and could not be mapped.
  std::vector<Stage> packing(bool behind) {
    return only_if(memory_.packing, [self = shared_from_this(), behind] {
      return behind ? self->rows_.has_value() && !self->is_done_ : !self->rows_.has_value();
    });
  }

  /// A rank that would have taken rows packs after the others have heard of its memory.
  Stage telling_packed() {
    Stage stage;
    const auto self = shared_from_this();
    const auto says = [self](std::int32_t from, std::int32_t to) {
      return self->goes_ && !self->rows_ && self->offer(from).is_packed && self->is_worker(to);
    };
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (r == own()) continue;
      stage.push_back(only_if(sending(r, std::as_bytes(std::span(&packed_, 1)), packed_place),
                              [says, r, own = own()] { return says(own, r); }));
      std::byte& heard = heard_packed_[static_cast<std::size_t>(r)];
      stage.push_back(
          only_if(receiving(r, std::as_writable_bytes(std::span(&heard, 1)), packed_place),
                  [says, r, own = own()] { return says(r, own); }));
    }
    return stage;
  }

  // ---- who has what ---------------------------------------------------------------------------
  Stage referring() {
    Stage stage;
    if (!memory_.home.lane) return stage;
    const auto refer = [&](std::byte* at, std::shared_ptr<p2p::Referral>& referral) {
      if (at == nullptr) return;
      referral = std::make_shared<p2p::Referral>(p2p::Referral{at, rank_.nodes});
      stage.push_back({"a reference to its memory", [self = shared_from_this(), referral](
                                                        Courier& courier, std::int64_t ticket) {
                         courier.refer(referral, ticket);
                         return false;
                       }});
    };
    refer(memory_.input, input_);
    refer(memory_.output, output_);
    if (memory_.has_rows) {
      refer(memory_.input_rows.memory, input_at_);
      refer(memory_.output_rows.memory, output_at_);
    }
    return stage;
  }

  void make_offer() {
    DirectOffer& made = offer(own());
    made.heard = rank_.known->heard_before(memory_.number);
    made.maps_slowly = rank_.maps_slowly;
    made.is_on_device = memory_.home.lane.has_value();
    const auto add = [&](const std::shared_ptr<p2p::Referral>& referral, bool& has,
                         p2p::MemoryReference& reference) {
      if (referral == nullptr) return;
      has = true;
      made.is_on_device = made.is_on_device && referral->reference.has_value();
      if (referral->reference) reference = *referral->reference;
    };
    add(input_, made.has_input, made.input);
    add(output_, made.has_output, made.output);
    made.is_on_device = made.is_on_device && (made.has_input || made.has_output);
    // Rows in memory that processes cannot share are packed.
    made.has_rows = memory_.has_rows;
    const auto add_rows = [&](const std::shared_ptr<p2p::Referral>& referral,
                              p2p::MemoryReference& reference) {
      if (referral == nullptr) return;
      made.has_rows = made.has_rows && referral->reference.has_value();
      if (referral->reference) reference = *referral->reference;
    };
    add_rows(input_at_, made.input_at);
    add_rows(output_at_, made.output_at);
    made.is_packed = memory_.is_packed;
    made.input_rows = memory_.input_rows.rows;
    made.output_rows = memory_.output_rows.rows;
  }

  Stage telling_all() {
    Stage stage;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (r == own()) continue;
      DirectOffer* const given = &offer(own());
      DirectOffer* const taken = &offer(r);
      stage.push_back(sending(r, std::as_bytes(std::span(given, 1)), offer_place));
      stage.push_back(receiving(r, std::as_writable_bytes(std::span(taken, 1)), offer_place));
    }
    return stage;
  }

  /// The same on all ranks.
  void decide() {
    goes_ = std::ranges::all_of(offers_, &DirectOffer::is_on_device);
    if (!goes_) {
      return refuse("not all ranks have their memory on a device whose memory processes can share");
    }
    take_rows();
    for (std::int32_t r = 0; r < ranks(); ++r) {
      const auto is_new = [&](std::int32_t other) {
        return offer(other).device() != offer(r).device();
      };
      if (std::ranges::all_of(workers_, is_new)) workers_.push_back(r);
    }
    identity_ = identity_of(offers_);
    const std::int64_t heard = std::ranges::min(offers_, {}, &DirectOffer::heard).heard;
    const KnownMemory::Fact fact = rank_.known->of(identity_, heard);
    using Knowledge = KnownMemory::Knowledge;
    if (fact.knowledge == Knowledge::refused) return refuse(fact.why);
    const bool maps_slowly = std::ranges::any_of(offers_, &DirectOffer::maps_slowly);
    if (fact.knowledge == Knowledge::unknown && maps_slowly && !memory_.is_forced) {
      rank_.known->learn(memory_.number, identity_, {Knowledge::seen, {}});
      return refuse("the memory is new to the group, and is mapped when it comes again");
    }
    needs_trial_ = workers_.size() > 1 && fact.knowledge != Knowledge::mapped;
  }

  void take_rows() {
    rows_ = common_rows(offers_);
    if (!rows_) return;
    for (DirectOffer& one : offers_) {
      one.input = one.input_at;
      one.output = one.output_at;
    }
  }

  /// All ranks go another way.
  void refuse(std::string why) {
    goes_ = false;
    why_not_ = std::move(why);
    rank_.known->ended(memory_.number);
    if (!memory_.is_forced) return;
    throw Error(ErrorCode::usage, fmt::format("{}: 'direct' cannot be taken: {}", what_, why_not_));
  }

  // ---- the work -------------------------------------------------------------------------------
  [[nodiscard]] bool has(Part part) const { return goes_ && (part == Part::work || needs_trial_); }

  Chore working(Part part) {
    return {"the work of its device for all",
            [self = shared_from_this(), part](Courier& courier, std::int64_t ticket) {
              return self->work(part, courier, ticket);
            }};
  }

  bool work(Part part, Courier& courier, std::int64_t ticket) {
    if (!has(part) || !is_worker(own())) return true;
    p2p::DeviceWork work;
    work.lane = *memory_.home.lane;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      const NodeId node = rank_.nodes[static_cast<std::size_t>(r)];
      if (offer(r).has_input) work.remote.push_back({node, offer(r).input});
      if (offer(r).has_output) work.remote.push_back({node, offer(r).output});
    }
    refusal_ = std::make_shared<std::string>();
    work.refusal = refusal_;
    work.queue = [self = shared_from_this(), part](const p2p::WorkPlace& place) {
      if (part == Part::work) self->queue(place);
    };
    courier.work(std::move(work), ticket);
    return false;
  }

  void queue(const p2p::WorkPlace& place) {
    const auto share = std::ranges::find(workers_, own()) - workers_.begin();
    const DirectShare mine(memory_.block_bytes, static_cast<std::int64_t>(share),
                           static_cast<std::int64_t>(workers_.size()), rows_);
    const std::vector<RankSpots> spots = spots_of(offers_, place.remote);
    if (reduces_) {
      mine.queue_reductions(place.stream, jobs_, spots, operation_, scalar_);
    } else {
      mine.queue_copies(place.stream, jobs_, spots);
    }
  }

  // ---- how it went ----------------------------------------------------------------------------
  Stage answering(Part part) {
    Stage stage;
    const auto self = shared_from_this();
    const Place place = part == Part::trial ? trial_place : work_place;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (r == own()) continue;
      stage.push_back(
          only_if(sending(r, std::as_bytes(std::span(&answer(own()), 1)), place), [self, part] {
            if (!self->has(part) || !self->is_worker(self->own())) return false;
            self->answer(self->own()) = self->own_answer();
            return true;
          }));
      stage.push_back(only_if(receiving(r, std::as_writable_bytes(std::span(&answer(r), 1)), place),
                              [self, part, r] { return self->has(part) && self->is_worker(r); }));
    }
    return stage;
  }

  void hear(Part part) {
    if (!has(part)) return;
    if (is_worker(own())) answer(own()) = own_answer();
    const auto failed =
        std::ranges::find_if(workers_, [&](std::int32_t r) { return !answer(r).could; });
    using Knowledge = KnownMemory::Knowledge;
    if (failed == workers_.end()) {
      rank_.known->learn(memory_.number, identity_, {Knowledge::mapped, {}});
      is_done_ = part == Part::work;
      if (is_done_) rank_.known->ended(memory_.number);
      return;
    }
    std::string why =
        fmt::format("rank {} cannot map all memory: {}", *failed, answer(*failed).why.data());
    rank_.known->learn(memory_.number, identity_, {Knowledge::refused, why});
    // One device alone maps before it writes, and several have tried before. Otherwise some have
    // written, which is no harm unless they wrote to an input.
    const bool is_harmless = part == Part::trial || workers_.size() == 1 ||
                             std::ranges::none_of(offers_, &DirectOffer::is_in_place);
    if (is_harmless) return refuse(std::move(why));
    throw Error(ErrorCode::communication,
                fmt::format("{}: memory that could be mapped cannot be any more: {}", what_, why));
  }

  [[nodiscard]] Answer own_answer() const {
    Answer made;
    made.could = refusal_->empty();
    const std::size_t length = std::min(refusal_->size(), made.why.size() - 1);
    std::copy_n(refusal_->begin(), length, made.why.begin());
    return made;
  }

  // ---- messages -------------------------------------------------------------------------------
  [[nodiscard]] Answer& answer(std::int32_t rank) {
    return answers_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Courier::Name name(Place place) const {
    return {0, 0, 1, mixed(seal_, static_cast<std::uint64_t>(place) + 1)};
  }
  Chore sending(std::int32_t to, std::span<const std::byte> bytes, Place place) {
    return {fmt::format("sending to rank {} where its memory is", to),
            [self = shared_from_this(), to, bytes, place](Courier& courier, std::int64_t ticket) {
              courier.send(Rank{to}, self->name(place), std::array{bytes}, ticket);
              return false;
            }};
  }
  Chore receiving(std::int32_t from, std::span<std::byte> bytes, Place place) {
    return {fmt::format("hearing of the memory of rank {}", from),
            [self = shared_from_this(), from, bytes, place](Courier& courier, std::int64_t ticket) {
              courier.receive(Rank{from}, self->name(place), std::array{bytes}, ticket);
              return false;
            }};
  }

  const DirectRank rank_;
  const DirectMemory memory_;
  const ReduceOperation operation_;
  const Scalar scalar_;
  const bool reduces_;
  const std::uint64_t seal_;
  const std::vector<DirectJob> jobs_;
  const std::string what_;
  std::shared_ptr<p2p::Referral> input_;
  std::shared_ptr<p2p::Referral> output_;
  std::shared_ptr<p2p::Referral> input_at_;  ///< of the rows
  std::shared_ptr<p2p::Referral> output_at_;
  std::vector<DirectOffer> offers_;  ///< by rank
  std::vector<Answer> answers_;      ///< of workers, by rank
  const std::byte packed_{1};
  std::vector<std::byte> heard_packed_;  ///< by rank
  std::vector<std::int32_t> workers_;    ///< the first rank on each device
  std::shared_ptr<std::string> refusal_;
  std::uint64_t identity_ = 0;
  std::optional<CommonRows> rows_;  ///< if they are taken
  bool goes_ = false;
  bool needs_trial_ = false;
  bool is_done_ = false;
  std::string why_not_;
};

}  // namespace

void add_direct_way(const Call& call, const DirectRank& rank, const DirectMemory& memory,
                    std::function<std::shared_ptr<Errand>()> otherwise, Task& task) {
  const auto way = std::make_shared<DirectWay>(call, rank, memory, task);
  for (Stage& stage : way->stages()) {
    if (!stage.empty()) task.before.push_back(std::move(stage));
  }
  if (memory.has_rows) {
    task.after = only_if(std::move(task.after), [way] { return !way->is_done_in_rows(); });
  }
  task.has_all = [way] { return way->is_done(); };
  task.why_not = [way] {
    return way->why_not().empty() ? std::string() : "direct: " + way->why_not();
  };
  if (!otherwise) return;
  task.errand = [way, otherwise = std::move(otherwise)]() -> std::shared_ptr<Errand> {
    return way->shares_one_device() ? otherwise() : nullptr;
  };
}

}  // namespace heddle::collectives
