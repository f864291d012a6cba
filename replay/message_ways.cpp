#include "replay/message_ways.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "replay/looks.hpp"

namespace heddle::replay {
namespace {

constexpr double rate_max = 1e13;  // bytes/s, if the size makes no difference

/// The line with a given slope that has the wanted fraction below it.
struct Line {
  double latency_s = 0;
  double loss = 0;  ///< objective of the quantile regression
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

/// Messages of one kind of path.
struct Samples {
  std::vector<Transfer> alone;
  /// Each from the end of the previous one: without the latency, which was hidden.
  std::vector<Transfer> behind_others;

  [[nodiscard]] std::vector<Transfer> best() const {
    if (10 * alone.size() >= behind_others.size()) return alone;
    std::vector<Transfer> all = alone;
    all.insert(all.end(), behind_others.begin(), behind_others.end());
    return all;
  }
};

/// Busy periods of a receiver, independent of the order of parts: a progress thread with its own
/// core reads several messages in turns, and all end with the last.
class Periods {
 public:
  /// Call in order of the messages' starts.
  void add(const Message& message, double message_s) {
    const Interval& time = message.time;
    Period& last = last_[message.to.value()];
    if (last.messages == 0 || time.start_ns >= last.end_ns) {
      close(last, message_s);
      last = {.begin_ns = time.start_ns};
    }
    last.end_ns = std::max(last.end_ns, time.end_ns);
    last.bytes += static_cast<double>(message.bytes);
    ++last.messages;
  }
  [[nodiscard]] std::vector<Transfer> all(double message_s) && {
    for (auto& [node, last] : last_) close(last, message_s);
    return std::move(all_);
  }

 private:
  struct Period {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    double bytes = 0;
    int messages = 0;
  };
  void close(const Period& period, double message_s) {
    if (period.messages == 0) return;
    const double seconds = static_cast<double>(period.end_ns - period.begin_ns) * 1e-9;
    all_.push_back({period.bytes, std::max(1e-9, seconds - period.messages * message_s)});
  }

  std::unordered_map<std::int32_t, Period> last_;  // by node
  std::vector<Transfer> all_;
};

/// Reduces the rate so that the total time of all transfers is preserved.
Way conserving(const Way& way, const std::vector<Transfer>& transfers) {
  double took = 0;
  double foreseen = 0;
  for (const Transfer& one : transfers) {
    took += one.seconds;
    foreseen += way.latency_s + one.bytes / way.bytes_per_s;
  }
  if (foreseen <= 0) return way;
  return {way.latency_s * took / foreseen, way.bytes_per_s * foreseen / took};
}

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
  // The loss is convex in the slope: search between 0 and the steepest.
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

namespace {

/// Messages through memory between nodes whose progress threads have their own cores.
std::optional<Way> way_of_periods(std::vector<const Message*> messages,
                                  const SimulatedMachine& machine) {
  std::ranges::sort(messages, {}, [](const Message* one) { return one->time.start_ns; });
  Periods periods;
  for (const Message* message : messages) periods.add(*message, machine.message_s);
  const std::vector<Transfer> all = std::move(periods).all(machine.message_s);
  const std::optional<Way> way = fit_way(all, 0.5, machine.memory.latency_s);
  return way ? std::optional(conserving(*way, all)) : std::nullopt;
}

/// Other messages, by their own times.
std::optional<Way> way_of_messages(std::vector<const Message*> messages, const Looks& looks,
                                   const SimulatedMachine& machine, bool by_memory) {
  Samples samples;
  std::unordered_map<std::int32_t, std::int64_t> over_ns;  // by node: end of its last message
  std::ranges::sort(messages, {}, [](const Message* one) { return one->time.end_ns; });
  for (const Message* message : messages) {
    const std::int64_t looks_ns = looks.first(message->to, message->time.start_ns);
    const std::int64_t before_ns =
        std::exchange(over_ns[message->to.value()], message->time.end_ns);
    const bool queued = by_memory && before_ns > looks_ns;
    const std::int64_t ns = message->time.end_ns - (queued ? before_ns : looks_ns);
    const Transfer transfer{static_cast<double>(message->bytes),
                            std::max(1e-9, static_cast<double>(ns) * 1e-9 - machine.message_s)};
    (queued ? samples.behind_others : samples.alone).push_back(transfer);
  }
  const double quantile = machine.shares_cores() ? 0.5 : 0.1;
  return fit_way(samples.best(), quantile,
                 by_memory ? machine.memory.latency_s : machine.network.latency_s);
}

}  // namespace

MessageWays message_ways(const RunTrace& run, std::int32_t job, const SimulatedMachine& machine) {
  std::vector<const Message*> by_memory;
  std::vector<const Message*> by_network;
  for (const Message& message : run.messages) {
    if (message.job != job || message.bytes == 0) continue;
    (machine.are_neighbours(message.from, message.to) ? by_memory : by_network).push_back(&message);
  }
  const Looks looks(run, machine);
  MessageWays ways;
  ways.network = way_of_messages(std::move(by_network), looks, machine, false);
  ways.memory = machine.shares_cores() ? way_of_messages(std::move(by_memory), looks, machine, true)
                                       : way_of_periods(std::move(by_memory), machine);
  return ways;
}

}  // namespace heddle::replay
