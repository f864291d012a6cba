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

}  // namespace

void PlaceLoads::go_on(Load& load, std::int64_t now_ns) {
  if (load.tasks > 0) {
    load.busy_seconds +=
        1e-9 * static_cast<double>(std::max<std::int64_t>(0, now_ns - load.since_ns));
  }
  load.since_ns = now_ns;
}

void PlaceLoads::add(PlaceId place, double seconds, std::int64_t now_ns) {
  Load& load = at(place);
  go_on(load, now_ns);
  load.seconds += seconds;
  ++load.tasks;
}

void PlaceLoads::remove(PlaceId place, double seconds, std::int64_t now_ns) {
  Load& load = at(place);
  HEDDLE_CHECK(load.tasks > 0, "place {}", place.value());
  go_on(load, now_ns);
  --load.tasks;
  // Sums of parts of a second leave something behind.
  load.seconds = load.tasks == 0 ? 0 : std::max(0.0, load.seconds - seconds);
}

void PlaceLoads::finish(PlaceId place, double seconds, std::int64_t now_ns) {
  remove(place, seconds, now_ns);
  Load& load = at(place);
  load.busy_seconds *= memory;
  load.known_seconds = (load.known_seconds + seconds) * memory;
  const double believed = load.tasks_believed * seconds;
  load.tasks_believed *= belief;
  if (believed + load.known_seconds <= 0) return;
  load.factor = std::clamp((load.busy_seconds + believed) / (load.known_seconds + believed),
                           1 / factor_max, factor_max);
}

}  // namespace heddle
