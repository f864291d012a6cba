#include "replay/message_ways.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "replay/looks.hpp"

namespace heddle::replay {
namespace {

constexpr double rate_max = 1e13;  // bytes per second, where size makes no difference

/// The line of one slope that has the wanted share below it.
struct Line {
  double latency_s = 0;
  double loss = 0;  ///< what quantile regression makes least
};

class QuantileFit {
 public:
  QuantileFit(const std::vector<Transfer>& transfers, double quantile)
      : transfers_(transfers), quantile_(quantile), left_(transfers.size()) {}

  Line with_slope(double seconds_per_byte) {
    for (std::size_t i = 0; i < left_.size(); ++i) {
      left_[i] = transfers_[i].seconds - seconds_per_byte * transfers_[i].bytes;
    }
    const auto last = static_cast<double>(left_.size() - 1);
    const auto at = left_.begin() + static_cast<std::ptrdiff_t>(quantile_ * last);
    std::ranges::nth_element(left_, at);
    Line line{std::max(0.0, *at)};
    for (const double left : left_) {
      const double above = left - line.latency_s;
      line.loss += above > 0 ? quantile_ * above : (quantile_ - 1) * above;
    }
    return line;
  }

 private:
  const std::vector<Transfer>& transfers_;
  double quantile_;
  std::vector<double> left_;
};

/// Messages of one kind of way.
struct Samples {
  std::vector<Transfer> alone;
  /// Each from the end of the one before: without the latency, which that one's time has hidden.
  std::vector<Transfer> behind_others;

  [[nodiscard]] std::vector<Transfer> best() const {
    if (10 * alone.size() >= behind_others.size()) return alone;
    std::vector<Transfer> all = alone;
    all.insert(all.end(), behind_others.begin(), behind_others.end());
    return all;
  }
};

}  // namespace

std::optional<Way> fit_way(const std::vector<Transfer>& transfers, double quantile,
                           double latency_s) {
  if (transfers.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(transfers, {}, &Transfer::bytes);
  QuantileFit fit(transfers, quantile);
  if (most.bytes < 1.01 * least.bytes) {
    const double all = std::max(fit.with_slope(0).latency_s, most.bytes / rate_max);
    const double latency = std::min(latency_s, all / 2);
    return Way{latency, most.bytes / (all - latency)};
  }
  // The loss is convex in the slope: look where it is least between none and the steepest.
  double low = 0;
  double high = 0;
  for (const Transfer& one : transfers) high = std::max(high, one.seconds / one.bytes);
  for (int step = 0; step < 100; ++step) {
    const double left = low + (high - low) / 3;
    const double right = high - (high - low) / 3;
    if (fit.with_slope(left).loss <= fit.with_slope(right).loss) {
      high = right;
    } else {
      low = left;
    }
  }
  return Way{fit.with_slope(low).latency_s, 1 / std::max(low, 1 / rate_max)};
}

MessageWays message_ways(const RunTrace& run, std::int32_t job, const SimulatedMachine& machine) {
  const Looks looks(run, machine);
  std::array<Samples, 2> samples;
  std::unordered_map<std::int32_t, std::int64_t> over_ns;  // by node: its last message
  std::vector<const Message*> messages;
  for (const Message& message : run.messages) {
    if (message.job == job && message.bytes > 0) messages.push_back(&message);
  }
  std::ranges::sort(messages, {}, [](const Message* one) { return one->time.end_ns; });
  for (const Message* message : messages) {
    const bool by_memory = machine.are_neighbours(message->from, message->to);
    const std::int64_t looks_ns = looks.first(message->to, message->time.start_ns);
    const std::int64_t before_ns =
        std::exchange(over_ns[message->to.value()], message->time.end_ns);
    const bool queued = by_memory && before_ns > looks_ns;
    const std::int64_t ns = message->time.end_ns - (queued ? before_ns : looks_ns);
    const Transfer transfer{static_cast<double>(message->bytes),
                            std::max(1e-9, static_cast<double>(ns) * 1e-9 - machine.message_s)};
    Samples& to = samples.at(by_memory ? 0 : 1);
    (queued ? to.behind_others : to.alone).push_back(transfer);
  }
  const double quantile = machine.shares_cores() ? 0.5 : 0.1;
  return {fit_way(samples[0].best(), quantile, machine.memory.latency_s),
          fit_way(samples[1].best(), quantile, machine.network.latency_s)};
}

}  // namespace heddle::replay
