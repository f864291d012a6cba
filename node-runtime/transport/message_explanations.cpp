#include "node-runtime/transport/message_explanations.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace heddle {

void MessageExplanations::add(const p2p::MessageReport& report) {
  const std::scoped_lock lock(mutex_);
  auto kind = std::ranges::find_if(kinds_, [&](const Kind& known) {
    return known.first.path == report.path && known.first.bytes == report.bytes;
  });
  if (kind == kinds_.end()) {
    if (kinds_.size() == kinds_max) {
      ++others_;
      return;
    }
    kind = kinds_.insert(kinds_.end(), {report, 0, 0});
  }
  ++kind->messages;
  kind->us += report.measured_us;
}

std::vector<std::string> MessageExplanations::texts() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Kind> kinds = kinds_;
  std::ranges::stable_sort(kinds, [](const Kind& a, const Kind& b) {
    return a.first.bytes * a.messages > b.first.bytes * b.messages;
  });
  std::vector<std::string> texts;
  for (const Kind& kind : kinds) {
    texts.push_back(fmt::format("{} messages of {} bytes, {:.1f} us on the average; the first:\n{}",
                                kind.messages, kind.first.bytes,
                                kind.us / static_cast<double>(kind.messages), explain(kind.first)));
  }
  if (others_ > 0) texts.push_back(fmt::format("{} messages of further kinds", others_));
  return texts;
}

}  // namespace heddle
