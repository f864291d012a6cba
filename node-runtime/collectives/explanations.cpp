#include "node-runtime/collectives/explanations.hpp"

#include <fmt/core.h>

namespace heddle::collectives {

std::string describe(const CollectiveChoice& choice) {
  const auto us = [](double seconds) { return 1e6 * seconds; };
  std::string text = fmt::format("{:.1f} us", us(choice.seconds));
  if (choice.seconds_in_order.front() > 0) {
    text += fmt::format(", by order: ranks {:.1f} us, places {:.1f} us",
                        us(choice.seconds_in_order.front()), us(choice.seconds_in_order.back()));
  }
  for (std::size_t i = 1; i < choice.considered.size(); ++i) {
    const CollectiveChoice::Candidate& other = choice.considered[i];
    text += fmt::format("{} {}: {:.1f} us", i == 1 ? "; not" : ",", other.text, us(other.seconds));
  }
  for (std::size_t i = 0; i < choice.on_devices.size(); ++i) {
    const CollectiveChoice::DeviceCandidate& way = choice.on_devices[i];
    text += i == 0 ? "; in memory of devices " : i == 1 ? ", not " : ", ";
    text += way.lacks.empty() ? fmt::format("{}: {:.1f} us", way.way, us(way.seconds))
                              : fmt::format("{} ({})", way.way, way.lacks);
  }
  return text;
}

void Explanations::add(const Call& call, const std::string& how, const CollectiveChoice& choice,
                       double seconds, const std::string& why_not) {
  CallSummary summary = call.summary();
  summary.name.clear();
  const std::string kind = summary.describe();
  const std::scoped_lock lock(mutex_);
  if (kinds_.size() >= kinds_max || !kinds_.insert(kind).second) return;
  const std::string order =
      call.may_reorder() ? fmt::format(", in the order of {}", name_of(choice.order)) : "";
  print_(fmt::format("{}: {}{}, took {:.1f} us; predicted {}{}{}", kind, how, order, 1e6 * seconds,
                     describe(choice), why_not.empty() ? "" : "; not ", why_not));
}

}  // namespace heddle::collectives
