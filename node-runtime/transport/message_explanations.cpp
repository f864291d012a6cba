#include "node-runtime/transport/message_explanations.hpp"

#include <algorithm>
#include <fmt/core.h>

namespace heddle {

void MessageExplanations::add(const p2p::MessageReport& report) {
  const std::scoped_lock lock(mutex_);
  auto kind = std::ranges::find_if(kinds_, [&](const Kind& known) {
    return known.path == report.path && known.bytes == report.bytes;
  });
  if (kind == kinds_.end()) {
    if (kinds_.size() == kinds_max) {
      ++others_;
      return;
    }
    kind = kinds_.insert(kinds_.end(), {report.path, report.bytes, explain(report), 0, 0});
  }
  ++kind->messages;
  kind->us += report.measured_us;
}

std::vector<std::string> MessageExplanations::texts() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Kind> kinds = kinds_;
  std::ranges::stable_sort(kinds, [](const Kind& a, const Kind& b) {
    return a.bytes * a.messages > b.bytes * b.messages;
  });
  std::vector<std::string> texts;
  for (const Kind& kind : kinds) {
    texts.push_back(fmt::format("{} messages of {} bytes, {:.1f} us on the average; the first:\n{}",
                                kind.messages, kind.bytes,
                                kind.us / static_cast<double>(kind.messages), kind.first));
  }
  if (others_ > 0) texts.push_back(fmt::format("{} messages of further kinds", others_));
  return texts;
}

}  // namespace heddle
