#include "node-runtime/fine/fine_scheduler.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.hpp"

namespace heddle {
namespace {

/// Extra places beside one per worker: urgent tasks may be divided before less urgent ones finish.
constexpr std::int32_t overtaking = 16;

}  // namespace

FineScheduler::FineScheduler(std::int32_t workers, std::vector<std::uint8_t> distances)
    : workers_(workers), distances_(std::move(distances)) {
  HEDDLE_CHECK(workers >= 1, "{} workers", workers);
  HEDDLE_CHECK(distances_.empty() || distances_.size() == static_cast<std::size_t>(workers) *
                                                              static_cast<std::size_t>(workers),
               "{} distances of {} workers", distances_.size(), workers);
  for (std::int32_t i = 0; i < workers + overtaking; ++i) {
    places_.push_back(std::make_unique<DividedTask>());
    free_.push_back(places_.back().get());
  }
  open_.reserve(places_.size());
}

void FineScheduler::reserve(std::int32_t fine_tasks) {
  HEDDLE_CHECK(fine_tasks >= 0, "{} fine tasks", fine_tasks);
  const auto count = static_cast<std::size_t>(fine_tasks);
  for (DividedTask* place : free_) {
    place->missing_.reserve(count);
    place->ready_.reserve((count + 63) / 64);
  }
}

DividedTask& FineScheduler::begin() {
  HEDDLE_CHECK(may_begin(), "{} tasks are divided already", divided_count());
  DividedTask& divided = *free_.back();
  free_.pop_back();
  return divided;
}

void FineScheduler::give_back(DividedTask& divided) {
  HEDDLE_DEBUG(std::ranges::find(free_, &divided) == free_.end() &&
                   std::ranges::find(open_, &divided) == open_.end(),
               "a place that nobody has begun");
  free_.push_back(&divided);
}

void FineScheduler::prepare(DividedTask& divided, protocol::Task& task, std::int32_t priority,
                            const FineGraph& graph, std::span<const TileView> tiles) {
  const auto size = static_cast<std::size_t>(graph.size());
  HEDDLE_CHECK(size > 0, "a task without fine tasks");
  divided.task = &task;
  divided.priority = priority;
  divided.graph = &graph;
  HEDDLE_CHECK(tiles.size() <= divided.tiles.size(), "{} tiles", tiles.size());
  std::copy(tiles.begin(), tiles.end(), divided.tiles.begin());
  divided.missing_.assign(graph.missing().begin(), graph.missing().end());
  divided.ready_.assign((size + 63) / 64, 0);
  divided.first_word_ = 0;
  divided.ready_count_ = 0;
  divided.unfinished_ = graph.size();
  for (std::size_t i = 0; i < size; ++i) {
    if (divided.missing_[i] > 0) continue;
    divided.ready_[i / 64] |= std::uint64_t{1} << i % 64;
    ++divided.ready_count_;
  }
}

void FineScheduler::open(DividedTask& divided, std::int32_t worker) {
  HEDDLE_CHECK(worker >= 0 && worker < workers_, "worker {} of {}", worker, workers_);
  HEDDLE_CHECK(divided.unfinished_ > 0, "a task that is not prepared");
  divided.worker_ = worker;
  divided.opened_ = opened_++;
  ready_count_ += divided.ready_count_;
  open_.push_back(&divided);
}

int FineScheduler::distance(std::int32_t a, std::int32_t b) const {
  if (distances_.empty()) return 0;
  return distances_[static_cast<std::size_t>(a) * static_cast<std::size_t>(workers_) +
                    static_cast<std::size_t>(b)];
}

bool FineScheduler::is_better(const DividedTask& a, const DividedTask& b,
                              std::int32_t worker) const {
  if (a.priority != b.priority) return a.priority > b.priority;
  const int to_a = distance(worker, a.worker_);
  const int to_b = distance(worker, b.worker_);
  if (to_a != to_b) return to_a < to_b;
  return a.opened_ < b.opened_;
}

std::int32_t FineScheduler::top() const {
  std::int32_t best = -1;
  for (const DividedTask* divided : open_) {
    if (divided->ready_count_ > 0) best = std::max(best, divided->priority);
  }
  return best;
}

FineWork FineScheduler::take(std::int32_t worker) {
  HEDDLE_DEBUG(worker >= 0 && worker < workers_, "worker {} of {}", worker, workers_);
  DividedTask* best = nullptr;
  for (DividedTask* divided : open_) {
    if (divided->ready_count_ == 0) continue;
    if (best == nullptr || is_better(*divided, *best, worker)) best = divided;
  }
  if (best == nullptr) return {};
  while (best->ready_[best->first_word_] == 0) {
    ++best->first_word_;
    HEDDLE_DEBUG(best->first_word_ < best->ready_.size(), "no ready task of {}",
                 best->ready_count_);
  }
  std::uint64_t& word = best->ready_[best->first_word_];
  const int bit = std::countr_zero(word);
  word &= word - 1;
  --best->ready_count_;
  --ready_count_;
  return {best, static_cast<std::int32_t>(best->first_word_) * 64 + bit};
}

void FineScheduler::set_ready(DividedTask& divided, std::int32_t number) {
  HEDDLE_DEBUG(!is_ready(divided, number), "fine task {} is ready twice", number);
  const auto word = static_cast<std::size_t>(number) / 64;
  divided.ready_[word] |= std::uint64_t{1} << number % 64;
  divided.first_word_ = std::min(divided.first_word_, word);
  ++divided.ready_count_;
  ++ready_count_;
}

FineScheduler::Finished FineScheduler::finish(FineWork work) {
  DividedTask& divided = *work.of;
  HEDDLE_DEBUG(!is_ready(divided, work.number), "fine task {} was not taken", work.number);
  HEDDLE_CHECK(divided.unfinished_ > 0, "fine task {} finishes twice", work.number);
  Finished result;
  for (const std::int32_t next : divided.graph->successors(work.number)) {
    std::int32_t& missing = divided.missing_[static_cast<std::size_t>(next)];
    HEDDLE_DEBUG(missing > 0, "fine task {} waits for {}", next, missing);
    if (--missing > 0) continue;
    missing = -1 - work.number;
    set_ready(divided, next);
    ++result.ready;
  }
  result.completes_task = --divided.unfinished_ == 0;
  return result;
}

void FineScheduler::close(DividedTask& divided) {
  HEDDLE_CHECK(divided.unfinished_ == 0, "{} fine tasks are not finished", divided.unfinished_);
  const auto at = std::find(open_.begin(), open_.end(), &divided);
  HEDDLE_CHECK(at != open_.end(), "a task that was not open");
  *at = open_.back();
  open_.pop_back();
  free_.push_back(&divided);
}

bool FineScheduler::is_valid(const DividedTask& divided) {
  std::int32_t waiting = 0;
  std::int32_t ready = 0;
  for (std::int32_t i = 0; i < divided.graph->size(); ++i) {
    const bool waits = divided.missing_[static_cast<std::size_t>(i)] > 0;
    if (waits && is_ready(divided, i)) return false;
    waiting += waits ? 1 : 0;
    ready += is_ready(divided, i) ? 1 : 0;
  }
  const auto skipped = std::span(divided.ready_).first(divided.first_word_);
  return ready == divided.ready_count_ && waiting + ready <= divided.unfinished_ &&
         divided.unfinished_ <= divided.graph->size() &&
         std::ranges::all_of(skipped, [](std::uint64_t word) { return word == 0; });
}

bool FineScheduler::is_valid() const {
  std::int64_t ready = 0;
  for (const DividedTask* const divided : open_) {
    if (!is_valid(*divided)) return false;
    ready += divided->ready_count_;
  }
  std::vector<const DividedTask*> known(free_.begin(), free_.end());
  known.insert(known.end(), open_.begin(), open_.end());
  std::ranges::sort(known);
  return ready == ready_count_ && known.size() <= places_.size() &&
         std::ranges::adjacent_find(known) == known.end();
}

}  // namespace heddle
