#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"

namespace heddle {

/// The work that the places of a node have: tasks that are ready or run there, in seconds by what
/// their kernels are known to take, corrected by what each place has needed lately for its work. A
/// wrong cost, a place that shares its cores, transfers that nothing hides: all show in how long a
/// place is busy with what it has done.
///
/// A GPU that pauses for some milliseconds, in its first job, has no more to do afterwards. So
/// there is a second, doubting view, in which pauses make no place slow: a place should lose work
/// only for what it has shown again and again.
///
/// Pure: who calls says what time it is. Not thread-safe: the caller serialises.
class PlaceLoads {
 public:
  explicit PlaceLoads(std::size_t places) : places_(places) {}

  /// What a task asks of a place.
  struct Work {
    double seconds = 0;  ///< of the whole place
    double share = 1;    ///< of the place that the task keeps busy: one of many workers, say
  };

  void add(PlaceId place, const Work& work, std::int64_t now_ns);
  /// It goes to another place without having run.
  void remove(PlaceId place, const Work& work, std::int64_t now_ns);
  /// It has run.
  void finish(PlaceId place, const Work& work, std::int64_t now_ns);
  /// Nobody gives work to a place that was slow once, at the end of a job, say, where its tasks
  /// wait for tiles, and it could not show that it is no longer. So one that has had nothing to do
  /// for as long as it should need for eight tasks is taken to be half as slow, down to the best
  /// that it has shown; after ten seconds what is known is believed again.
  void forget_after_rest(PlaceId place, std::int64_t now_ns);

  /// Until the place has done all that it has now.
  [[nodiscard]] double seconds(PlaceId place) const { return at(place).seconds * at(place).factor; }
  /// What the place needs for what should take a second.
  [[nodiscard]] double factor(PlaceId place) const { return at(place).factor; }
  /// The same two where one pause is doubted: no more than those.
  [[nodiscard]] double sure_seconds(PlaceId place) const {
    return at(place).seconds * sure_factor(place);
  }
  [[nodiscard]] double sure_factor(PlaceId place) const;
  /// What the place has needed for that at best lately: no pause makes it more.
  [[nodiscard]] double least_factor(PlaceId place) const;
  [[nodiscard]] std::int64_t tasks(PlaceId place) const { return at(place).tasks; }
  /// It has finished a spell of tasks: what it needs is known from it, until that is forgotten.
  [[nodiscard]] bool has_shown(PlaceId place) const { return at(place).best_spell.has_value(); }
  /// What the place has needed at best in any spell.
  [[nodiscard]] double best_factor(PlaceId place) const;
  void forget_best(PlaceId place) { at(place).best_spell.reset(); }

 private:
  /// Of some tasks on end: at least as many as a place has at a time, since they may all finish
  /// together.
  struct Spell {
    std::int64_t tasks_left = 0;
    double busy_seconds = 0;
    double known_seconds = 0;
  };
  /// Each task of a place changes the first line of it, on whichever core that is.
  struct alignas(64) Load {
    double seconds = 0;
    double shares = 0;  ///< of its tasks together
    std::int64_t tasks = 0;
    double factor = 1;
    /// Taken to need what is known, of the size of the last one, so that the first few do not
    /// decide alone; forgotten as they are.
    double tasks_believed = 4;
    double busy_seconds = 0;   ///< lately, with tasks there: of the shares that they keep busy
    double known_seconds = 0;  ///< of tasks that were finished meanwhile
    std::int64_t since_ns = 0;
    Spell spell;
    /// What it has needed in its last spells, and at best in any.
    std::array<double, 3> spells{1, 1, 1};
    std::optional<double> best_spell;
    double last_seconds = 0;  ///< of the task that it finished last, as known
  };
  [[nodiscard]] const Load& at(PlaceId place) const {
    return places_[static_cast<std::size_t>(place.value())];
  }
  [[nodiscard]] Load& at(PlaceId place) { return places_[static_cast<std::size_t>(place.value())]; }
  static void go_on(Load& load, std::int64_t now_ns);
  static void end_in_spell(Load& load, double seconds);

  std::vector<Load> places_;
};

}  // namespace heddle
