#include "node-runtime/transport/probe/remote_probe.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace heddle {
namespace {

using nlohmann::json;

/// What an exporter offers.
struct Offer {
  IpcMemoryHandle memory;
  IpcEventHandle event;
};

std::string to_text(const Offer& offer) {
  return {reinterpret_cast<const char*>(&offer), sizeof offer};
}

/// Another process's memory and event, open as long as this lives.
class Opened {
 public:
  Opened(Device& device, const Offer& offer)
      : device_(device), memory_(device.open_memory(offer.memory)) {
    try {
      event_ = device.open_event(offer.event);
    } catch (...) {
      device_.close_memory(memory_);
      throw;
    }
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    event_.reset();
    try {
      device_.close_memory(memory_);
    } catch (const Error&) {
      // A device that was given up frees no memory; the probe has reported why.
    }
  }

  [[nodiscard]] const std::byte* memory() const { return memory_.address; }
  [[nodiscard]] const Event& event() const { return *event_; }

 private:
  Device& device_;
  DeviceMemory memory_;
  std::unique_ptr<Event> event_;
};

}  // namespace

RemoteProbe::RemoteProbe(const Communicator& communicator, std::int32_t other,
                         const std::vector<std::unique_ptr<ProbedPlace>>& places,
                         const ProbeOptions& options, std::uint64_t seed)
    : communicator_(communicator),
      other_(other),
      is_first_(communicator.rank() < other),
      places_(places),
      options_(options),
      seed_(seed) {}

std::vector<PairReport> RemoteProbe::run() {
  const auto& hosts = communicator_.hosts();
  const auto self = static_cast<std::size_t>(communicator_.rank());
  const Nearness nearness =
      hosts[self] == hosts[static_cast<std::size_t>(other_)] ? Nearness::host : Nearness::apart;
  const auto start =
      json::parse(exchange(json{{"places", places_.size()}, {"seed", seed_}}.dump()));
  const auto theirs = start.at("places").get<std::size_t>();
  if (!is_first_) seed_ = start.at("seed").get<std::uint64_t>();
  const std::size_t firsts = is_first_ ? places_.size() : theirs;
  const std::size_t seconds = is_first_ ? theirs : places_.size();
  const std::int32_t first_node = std::min(communicator_.rank(), other_);
  const std::int32_t second_node = std::max(communicator_.rank(), other_);
  const auto place = [](std::int32_t node, std::size_t index) {
    return ProbePlace{node, static_cast<std::int32_t>(index) - 1};
  };
  std::vector<PairReport> reports;
  for (std::size_t f = 0; f < firsts; ++f) {
    for (std::size_t s = 0; s < seconds; ++s) {
      PairReport pair{place(first_node, f), place(second_node, s), nearness, {}};
      for (const Way way : ways_between(pair.first, pair.second, nearness)) {
        pair.attempts.push_back(try_way(way, *places_[is_first_ ? f : s]));
      }
      reports.push_back(std::move(pair));
    }
  }
  return reports;
}

Attempt RemoteProbe::try_way(Way way, ProbedPlace& mine) {
  return way == Way::mapped ? try_mapped(mine) : try_message(way, mine);
}

// ---- mapped memory ---------------------------------------------------------------------------

/// The first node's device exports, then the second one's.
Attempt RemoteProbe::try_mapped(ProbedPlace& mine) {
  const Verdict there = agree(is_first_ ? export_to_other(mine) : import_from_other(mine));
  const Verdict back = agree(is_first_ ? import_from_other(mine) : export_to_other(mine));
  Attempt attempt;
  attempt.way = Way::mapped;
  attempt.works = there.text.empty() && back.text.empty();
  attempt.reason = there.text.empty() ? back.text : there.text;
  attempt.latency_us = (there.latency_us + back.latency_us) / 2;
  attempt.rate = (there.rate + back.rate) / 2;
  return attempt;
}

RemoteProbe::Verdict RemoteProbe::export_to_other(ProbedPlace& mine) {
  Trouble trouble;
  Offer offer;
  trouble.run([&] {
    mine.require_device();
    offer.memory = mine.device()->export_memory(mine.memory());
    offer.event = mine.device()->export_event(mine.ready());
  });
  static_cast<void>(exchange(trouble.text() ? std::string() : to_text(offer)));
  const bool is_open = exchange({}).empty();
  if (!is_open) return verdict_of(trouble);
  for (const ProbeRound& round : probe_rounds(options_)) {
    ++seed_;
    trouble.run([&] {
      if (round.is_checked) {
        mine.begin_fill(seed_, round.bytes);  // its end is the importer's to wait for
      } else {
        mine.record();
      }
    });
    signal();
    await_signal();
    trouble.run([&] { mine.finish(); });
  }
  await_signal();  // the importer has closed it
  return verdict_of(trouble);
}

RemoteProbe::Verdict RemoteProbe::import_from_other(ProbedPlace& mine) {
  Trouble trouble;
  Stopwatch watch;
  std::optional<Opened> opened;
  const std::string text = exchange({});
  if (text.size() != sizeof(Offer)) {
    static_cast<void>(exchange("nothing was offered"));
    return verdict_of(trouble);
  }
  Offer offer;
  std::memcpy(&offer, text.data(), sizeof offer);
  trouble.run([&] {
    mine.require_device();
    opened.emplace(*mine.device(), offer);
  });
  static_cast<void>(exchange(trouble.text().value_or("")));
  if (!opened) return verdict_of(trouble);
  for (const ProbeRound& round : probe_rounds(options_)) {
    ++seed_;
    await_signal();
    trouble.run([&] {
      watch.start();
      mine.pull(opened->memory(), *mine.device(), opened->event(), round.bytes);
      watch.stop(round, 1);
    });
    if (round.is_checked) trouble.check([&] { mine.check(seed_, round.bytes); });
    signal();
  }
  // A stream may keep what it has waited for.
  trouble.run([&] { mine.start_afresh(); });
  opened.reset();
  signal();
  Verdict verdict = verdict_of(trouble);
  verdict.latency_us = watch.latency_us();
  verdict.rate = watch.rate();
  return verdict;
}

// ---- messages --------------------------------------------------------------------------------

Attempt RemoteProbe::try_message(Way way, ProbedPlace& mine) {
  Trouble trouble;
  Stopwatch watch;
  for (const ProbeRound& round : probe_rounds(options_)) {
    if (is_first_) {
      lead(way, mine, round, trouble, watch);
    } else {
      follow(way, mine, round, trouble);
    }
    seed_ += 2;
  }
  Verdict own = verdict_of(trouble);
  own.latency_us = watch.latency_us();
  own.rate = watch.rate();
  const Verdict verdict = agree(own);
  return {way, verdict.text.empty(), verdict.text, verdict.latency_us, verdict.rate};
}

/// Sends, and gets other bytes back.
void RemoteProbe::lead(Way way, ProbedPlace& mine, const ProbeRound& round, Trouble& trouble,
                       Stopwatch& watch) {
  if (round.is_checked) trouble.run([&] { mine.fill(seed_, round.bytes); });
  watch.start();
  trouble.run([&] { mine.copy_out(way, round.bytes); });
  send(mine.buffer(way), round.bytes);
  receive(mine.buffer(way), round.bytes);
  trouble.run([&] { mine.copy_in(way, round.bytes); });
  watch.stop(round, 2);
  if (round.is_checked) trouble.check([&] { mine.check(seed_ + 1, round.bytes); });
}

void RemoteProbe::follow(Way way, ProbedPlace& mine, const ProbeRound& round, Trouble& trouble) {
  receive(mine.buffer(way), round.bytes);
  trouble.run([&] { mine.copy_in(way, round.bytes); });
  if (round.is_checked) {
    trouble.check([&] { mine.check(seed_, round.bytes); });
    trouble.run([&] { mine.fill(seed_ + 1, round.bytes); });
  }
  trouble.run([&] { mine.copy_out(way, round.bytes); });
  send(mine.buffer(way), round.bytes);
}

// ---- between the two nodes -------------------------------------------------------------------

RemoteProbe::Verdict RemoteProbe::verdict_of(const Trouble& trouble) const {
  Verdict verdict;
  if (trouble.text())
    verdict.text = fmt::format("node {}: {}", communicator_.rank(), *trouble.text());
  verdict.is_consequence = trouble.is_consequence();
  return verdict;
}

RemoteProbe::Verdict RemoteProbe::agree(const Verdict& mine) const {
  const json told{{"text", mine.text},
                  {"consequence", mine.is_consequence},
                  {"latency", mine.latency_us},
                  {"rate", mine.rate}};
  const json heard =
      json::parse(exchange(told.dump(-1, ' ', false, json::error_handler_t::replace)));
  const Verdict theirs{heard.at("text").get<std::string>(), heard.at("consequence").get<bool>(),
                       heard.at("latency").get<double>(), heard.at("rate").get<double>()};
  Verdict agreed = is_first_ ? mine : theirs;
  const Verdict& second = is_first_ ? theirs : mine;
  const bool second_is_cause = !second.text.empty() && !second.is_consequence;
  if (agreed.text.empty() || (agreed.is_consequence && second_is_cause)) agreed.text = second.text;
  agreed.latency_us = std::max(mine.latency_us, theirs.latency_us);  // one of them has measured
  agreed.rate = std::max(mine.rate, theirs.rate);
  return agreed;
}

std::string RemoteProbe::exchange(const std::string& mine) const {
  return communicator_.exchange(other_, mine, options_.message_seconds_max);
}

void RemoteProbe::send(const std::byte* from, std::size_t bytes) const {
  communicator_.send(other_, {from, bytes}, options_.message_seconds_max);
}

void RemoteProbe::receive(std::byte* to, std::size_t bytes) const {
  communicator_.receive(other_, {to, bytes}, options_.message_seconds_max);
}

void RemoteProbe::signal() const {
  const std::byte nothing{};
  send(&nothing, 1);
}

void RemoteProbe::await_signal() const {
  std::byte nothing{};
  receive(&nothing, 1);
}

}  // namespace heddle
