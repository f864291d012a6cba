#include "node-runtime/placement/place_loads.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace heddle {
namespace {

/// What a place did longer ago counts this much less with each task that it finishes: the last
/// thirty or so decide.
constexpr double memory = 31.0 / 32.0;
/// And what was known before the first task, so much with each.
constexpr double belief = 3.0 / 4.0;
constexpr double factor_max = 1000;
/// Tasks of a spell.
constexpr std::int64_t spell_min = 8;
constexpr std::int64_t spell_max = 64;
/// That a place needs more than so many times what is usual is doubted until two of its last three
/// spells have shown it.
constexpr double doubted = 2;
constexpr std::int64_t long_rest_ns = 10'000'000'000;
/// Tasks' times of rest after which a place is taken to be half as slow.
constexpr double tasks_rested = 8;

double middle_of(std::array<double, 3> values) {
  std::ranges::sort(values);
  return values[1];
}

}  // namespace

void PlaceLoads::go_on(Load& load, std::int64_t now_ns) {
  if (load.tasks > 0) {
    const double passed = 1e-9 *
                          static_cast<double>(std::max<std::int64_t>(0, now_ns - load.since_ns)) *
                          std::min(1.0, load.shares);
    load.busy_seconds += passed;
    load.spell.busy_seconds += passed;
  }
  load.since_ns = now_ns;
}

void PlaceLoads::add(PlaceId place, const Work& work, std::int64_t now_ns) {
  Load& load = at(place);
  go_on(load, now_ns);
  load.seconds += work.seconds;
  load.shares += work.share;
  ++load.tasks;
}

void PlaceLoads::remove(PlaceId place, const Work& work, std::int64_t now_ns) {
  Load& load = at(place);
  HEDDLE_CHECK(load.tasks > 0, "place {}", place.value());
  go_on(load, now_ns);
  --load.tasks;
  // Sums of parts of a second leave something behind.
  load.seconds = load.tasks == 0 ? 0 : std::max(0.0, load.seconds - work.seconds);
  load.shares = load.tasks == 0 ? 0 : std::max(0.0, load.shares - work.share);
}

void PlaceLoads::end_in_spell(Load& load, double seconds) {
  Spell& spell = load.spell;
  if (spell.tasks_left == 0) spell.tasks_left = std::clamp(load.tasks + 1, spell_min, spell_max);
  spell.known_seconds += seconds;
  if (--spell.tasks_left > 0) return;
  if (spell.known_seconds > 0) {
    std::rotate(load.spells.begin(), load.spells.begin() + 1, load.spells.end());
    load.spells.back() = spell.busy_seconds / spell.known_seconds;
    load.best_spell = std::min(load.best_spell.value_or(load.spells.back()), load.spells.back());
  }
  spell = {};
}

void PlaceLoads::finish(PlaceId place, const Work& work, std::int64_t now_ns) {
  remove(place, work, now_ns);
  Load& load = at(place);
  const double seconds = work.seconds;
  load.last_seconds = seconds;
  end_in_spell(load, seconds);
  load.busy_seconds *= memory;
  load.known_seconds = (load.known_seconds + seconds) * memory;
  const double believed = load.tasks_believed * seconds;
  load.tasks_believed *= belief;
  if (believed + load.known_seconds <= 0) return;
  load.factor = std::clamp((load.busy_seconds + believed) / (load.known_seconds + believed),
                           1 / factor_max, factor_max);
}

double PlaceLoads::sure_factor(PlaceId place) const {
  const Load& load = at(place);
  return std::min(load.factor, doubted * middle_of(load.spells));
}

double PlaceLoads::least_factor(PlaceId place) const {
  const Load& load = at(place);
  return std::min(load.factor, *std::ranges::min_element(load.spells));
}

double PlaceLoads::best_factor(PlaceId place) const {
  return std::min(least_factor(place), at(place).best_spell.value_or(least_factor(place)));
}

void PlaceLoads::forget_after_rest(PlaceId place, std::int64_t now_ns) {
  Load& load = at(place);
  if (load.tasks > 0) return;
  const std::int64_t rest_ns = now_ns - load.since_ns;
  if (rest_ns >= long_rest_ns) {
    load = {};
    load.since_ns = now_ns;
    return;
  }
  // Not less than the best that it has shown, or what is known of one that has shown nothing yet.
  const double least = std::min(1.0, load.best_spell.value_or(1) / load.factor);
  double rest = 1e-9 * static_cast<double>(rest_ns);
  double less = 1;
  const auto needed = [&] { return tasks_rested * load.last_seconds * load.factor * less; };
  while (less > least && rest > needed()) {
    rest -= needed();
    less = std::max(less / 2, least);
  }
  if (less == 1) return;
  load.factor *= less;
  load.busy_seconds *= less;
  for (double& spell : load.spells) spell *= less;
  load.since_ns = now_ns;
}

}  // namespace heddle
