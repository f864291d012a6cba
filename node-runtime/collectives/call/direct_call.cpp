#include "node-runtime/collectives/call/direct_call.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "node-runtime/collectives/execution/seal.hpp"
#include "node-runtime/collectives/reduce/device_reduction.hpp"

namespace heddle::collectives {

namespace {

/// Where a rank's memory is.
struct Offer {
  std::int64_t heard = 0;  ///< KnownMemory::heard_before()
  bool maps_slowly = false;
  bool is_on_device = false;
  bool has_input = false;
  bool has_output = false;
  p2p::MemoryReference input;
  p2p::MemoryReference output;

  [[nodiscard]] const DeviceUuid& device() const {
    return has_output ? output.handle.device : input.handle.device;
  }
  [[nodiscard]] bool is_in_place() const {
    return has_input && has_output && input.address == output.address;
  }
};

/// Whether one who does the work could.
struct Answer {
  bool could = false;
  std::array<char, 191> why{};  ///< if not; ends with a zero
};

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
        answers_(static_cast<std::size_t>(ranks())) {
    rank_.known->begins(memory_.number);
  }
  DirectWay(const DirectWay&) = delete;
  DirectWay& operator=(const DirectWay&) = delete;
  ~DirectWay() { rank_.known->ended(memory_.number); }

  [[nodiscard]] std::vector<Stage> stages() {
    return {referring(),
            here([this] { make_offer(); }),
            telling_all(),
            here([this] { decide(); }),
            {working(Part::trial)},
            answering(Part::trial),
            here([this] { hear(Part::trial); }),
            {working(Part::work)},
            answering(Part::work),
            here([this] { hear(Part::work); })};
  }
  [[nodiscard]] bool is_done() const { return is_done_; }
  /// When the stages are over: why they have not done it; empty: they have.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// Then: whether all ranks' memory is on one device, which cannot map it.
  [[nodiscard]] bool shares_one_device() const { return workers_.size() == 1; }

 private:
  /// With several devices it is tried first whether all can map what they need.
  enum class Part : std::uint8_t { trial, work };

  [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(rank_.nodes.size()); }
  [[nodiscard]] std::int32_t own() const { return rank_.own.value(); }
  [[nodiscard]] Offer& offer(std::int32_t rank) { return offers_[static_cast<std::size_t>(rank)]; }
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
    return stage;
  }

  void make_offer() {
    Offer& made = offer(own());
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
  }

  Stage telling_all() {
    Stage stage;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (r == own()) continue;
      Offer* const given = &offer(own());
      Offer* const taken = &offer(r);
      stage.push_back(sending(r, std::as_bytes(std::span(given, 1)), 0));
      stage.push_back(receiving(r, std::as_writable_bytes(std::span(taken, 1)), 0));
    }
    return stage;
  }

  /// The same on all ranks.
  void decide() {
    goes_ = std::ranges::all_of(offers_, &Offer::is_on_device);
    if (!goes_) {
      return refuse("not all ranks have their memory on a device whose memory processes can share");
    }
    for (std::int32_t r = 0; r < ranks(); ++r) {
      const auto is_new = [&](std::int32_t other) {
        return offer(other).device() != offer(r).device();
      };
      if (std::ranges::all_of(workers_, is_new)) workers_.push_back(r);
    }
    identity_ = identity();
    const std::int64_t heard = std::ranges::min(offers_, {}, &Offer::heard).heard;
    const KnownMemory::Fact fact = rank_.known->of(identity_, heard);
    using Knowledge = KnownMemory::Knowledge;
    if (fact.knowledge == Knowledge::refused) return refuse(fact.why);
    const bool maps_slowly = std::ranges::any_of(offers_, &Offer::maps_slowly);
    if (fact.knowledge == Knowledge::unknown && maps_slowly && !memory_.is_forced) {
      rank_.known->learn(memory_.number, identity_, {Knowledge::seen, {}});
      return refuse("the memory is new to the group, and is mapped when it comes again");
    }
    needs_trial_ = workers_.size() > 1 && fact.knowledge != Knowledge::mapped;
  }

  /// A number for the allocations of all ranks.
  [[nodiscard]] std::uint64_t identity() const {
    std::uint64_t number = 1;
    for (const Offer& one : offers_) {
      for (const p2p::MemoryReference* memory : {&one.input, &one.output}) {
        std::uint64_t device = 0;
        for (const std::uint8_t byte : memory->handle.device.bytes) device = mixed(device, byte);
        number = mixed(mixed(number, device), memory->handle.allocation);
      }
    }
    return number;
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

  /// This rank's share of each job.
  void queue(const p2p::WorkPlace& place) {
    std::vector<std::array<p2p::Spot, 2>> sides(offers_.size());
    std::size_t next = 0;
    for (std::size_t r = 0; r < offers_.size(); ++r) {
      if (offers_[r].has_input) sides[r][0] = place.remote[next++];
      if (offers_[r].has_output) sides[r][1] = place.remote[next++];
    }
    const std::int64_t unit = reduces_ ? size_of(scalar_) * operation_.scalars_per_element() : 16;
    const std::int64_t units = (memory_.block_bytes + unit - 1) / unit;
    const auto share = std::ranges::find(workers_, own()) - workers_.begin();
    const auto workers = static_cast<std::int64_t>(workers_.size());
    const std::int64_t begin = units * share / workers * unit;
    const std::int64_t end = std::min(memory_.block_bytes, units * (share + 1) / workers * unit);
    if (end <= begin) return;
    const auto spot = [&](const DirectPlace& at) {
      p2p::Spot found = sides[static_cast<std::size_t>(at.rank.value())][at.is_output ? 1 : 0];
      found.address += at.block * memory_.block_bytes + begin;
      return found;
    };
    for (const DirectJob& job : jobs_) {
      std::vector<Source> from;
      std::vector<Destination> to;
      for (const DirectPlace& at : job.from) from.push_back({spot(at).address, spot(at).device});
      for (const DirectPlace& at : job.to) to.push_back({spot(at).address, spot(at).device});
      queue(place.stream, from, to, end - begin);
    }
  }

  void queue(Stream& stream, std::span<const Source> from, std::span<const Destination> to,
             std::int64_t bytes) const {
    if (reduces_) {
      const std::int64_t element = size_of(scalar_) * operation_.scalars_per_element();
      return queue_reduction(stream, operation_, scalar_, to, from, bytes / element);
    }
    if (to.size() == 1) {
      return stream.copy(to.front(), from.front(), static_cast<std::size_t>(bytes));
    }
    // With one input every operation is a copy.
    queue_reduction(stream, ReduceOperation::bit_or(), Scalar::uint8, to, from, bytes);
  }

  // ---- how it went ----------------------------------------------------------------------------
  Stage answering(Part part) {
    Stage stage;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (r == own()) continue;
      const std::int32_t place = part == Part::trial ? 1 : 2;
      const auto self = shared_from_this();
      Chore say = sending(r, std::as_bytes(std::span(&answer(own()), 1)), place);
      stage.push_back(
          {say.what, [self, part, say = say.begin](Courier& courier, std::int64_t ticket) {
             if (!self->has(part) || !self->is_worker(self->own())) return true;
             self->answer(self->own()) = self->own_answer();
             return say(courier, ticket);
           }});
      Chore listen = receiving(r, std::as_writable_bytes(std::span(&answer(r), 1)), place);
      stage.push_back({listen.what, [self, part, r, listen = listen.begin](Courier& courier,
                                                                           std::int64_t ticket) {
                         if (!self->has(part) || !self->is_worker(r)) return true;
                         return listen(courier, ticket);
                       }});
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
                             std::ranges::none_of(offers_, &Offer::is_in_place);
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
  [[nodiscard]] Courier::Name name(std::int32_t place) const {
    return {0, 0, 1, mixed(seal_, static_cast<std::uint64_t>(place) + 1)};
  }
  Chore sending(std::int32_t to, std::span<const std::byte> bytes, std::int32_t place) {
    return {fmt::format("sending to rank {} where its memory is", to),
            [self = shared_from_this(), to, bytes, place](Courier& courier, std::int64_t ticket) {
              courier.send(Rank{to}, self->name(place), std::array{bytes}, ticket);
              return false;
            }};
  }
  Chore receiving(std::int32_t from, std::span<std::byte> bytes, std::int32_t place) {
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
  std::vector<Offer> offers_;          ///< by rank
  std::vector<Answer> answers_;        ///< of workers, by rank
  std::vector<std::int32_t> workers_;  ///< the first rank on each device
  std::shared_ptr<std::string> refusal_;
  std::uint64_t identity_ = 0;
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
