#include "apps/simulation/rehearsed_clock.hpp"

#include <fmt/core.h>

namespace heddle {

double RehearsedClock::seconds(const KernelCase& what, Runner runner) {
  if (runner == Runner::worker) {
    if (const double seconds = rehearsed_->seconds(what); seconds > 0) {
      has_rehearsed_ = true;
      return seconds;
    }
  }
  has_asked_others_ = true;
  return others_->seconds(what, runner);
}

std::string RehearsedClock::source() const {
  constexpr const char* rehearsed = "as rehearsed on this machine, all workers at work";
  if (!has_asked_others_) return rehearsed;
  if (!has_rehearsed_) return others_->source();
  return fmt::format("{}; others {}", rehearsed, others_->source());
}

}  // namespace heddle
