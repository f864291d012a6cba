#include "node-runtime/transport/probe/local_probe.hpp"

#include <fmt/core.h>

#include "node-runtime/transport/probe/stopwatch.hpp"

namespace heddle {
namespace {

/// What a way has to do, in the two directions of one pair of places.
class Route {
 public:
  Route() = default;
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;
  virtual ~Route() = default;

  /// Whatever can be told before anything is moved. Throws Error.
  virtual void prepare() {}
  virtual void fill_first(std::uint64_t seed, std::size_t bytes) = 0;
  virtual void fill_second(std::uint64_t seed, std::size_t bytes) = 0;
  virtual void there(std::size_t bytes) = 0;
  virtual void back(std::size_t bytes) = 0;
  virtual void check_first(std::uint64_t seed, std::size_t bytes) = 0;
  virtual void check_second(std::uint64_t seed, std::size_t bytes) = 0;
};

/// Between two devices: each reads the other's memory, behind an event of the other's stream.
class PeerRoute final : public Route {
 public:
  PeerRoute(ProbedPlace& first, ProbedPlace& second) : first_(first), second_(second) {}

  void prepare() override {
    first_.require_device();
    second_.require_device();
    if (first_.device()->can_access_peer(*second_.device())) return;
    throw Error(ErrorCode::internal,
                fmt::format("{} and {} have no access to each other's memory",
                            first_.device()->info().name, second_.device()->info().name));
  }
  void fill_first(std::uint64_t seed, std::size_t bytes) override {
    first_.begin_fill(seed, bytes);
  }
  void fill_second(std::uint64_t seed, std::size_t bytes) override {
    second_.begin_fill(seed, bytes);
  }
  void there(std::size_t bytes) override {
    second_.pull(first_.memory(), *first_.device(), first_.ready(), bytes);
  }
  void back(std::size_t bytes) override {
    first_.pull(second_.memory(), *second_.device(), second_.ready(), bytes);
  }
  void check_first(std::uint64_t seed, std::size_t bytes) override { first_.check(seed, bytes); }
  void check_second(std::uint64_t seed, std::size_t bytes) override { second_.check(seed, bytes); }

 private:
  ProbedPlace& first_;
  ProbedPlace& second_;
};

/// Between two devices through host memory of the one that is read.
class StagedRoute final : public Route {
 public:
  StagedRoute(Way way, ProbedPlace& first, ProbedPlace& second)
      : way_(way), first_(first), second_(second) {}

  void fill_first(std::uint64_t seed, std::size_t bytes) override { first_.fill(seed, bytes); }
  void fill_second(std::uint64_t seed, std::size_t bytes) override { second_.fill(seed, bytes); }
  void there(std::size_t bytes) override { move(first_, second_, bytes); }
  void back(std::size_t bytes) override { move(second_, first_, bytes); }
  void check_first(std::uint64_t seed, std::size_t bytes) override { first_.check(seed, bytes); }
  void check_second(std::uint64_t seed, std::size_t bytes) override { second_.check(seed, bytes); }

 private:
  void move(ProbedPlace& from, ProbedPlace& to, std::size_t bytes) const {
    from.copy_out(way_, bytes);
    to.copy_in(way_, from.buffer(way_), bytes);
  }

  Way way_;
  ProbedPlace& first_;
  ProbedPlace& second_;
};

/// Between the host, whose memory is the device's buffer, and the device.
class HostRoute final : public Route {
 public:
  HostRoute(Way way, const ProbePlace& host, ProbedPlace& device)
      : way_(way), host_(host), device_(device) {}

  void fill_first(std::uint64_t seed, std::size_t bytes) override {
    fill_with_random(device_.buffer(way_), bytes, seed);
  }
  void fill_second(std::uint64_t seed, std::size_t bytes) override { device_.fill(seed, bytes); }
  void there(std::size_t bytes) override { device_.copy_in(way_, bytes); }
  void back(std::size_t bytes) override { device_.copy_out(way_, bytes); }
  void check_first(std::uint64_t seed, std::size_t bytes) override {
    check_random(device_.buffer(way_), bytes, seed, to_string(host_));
  }
  void check_second(std::uint64_t seed, std::size_t bytes) override { device_.check(seed, bytes); }

 private:
  Way way_;
  ProbePlace host_;
  ProbedPlace& device_;
};

Attempt try_route(Way way, Route& route, const ProbeOptions& options, std::uint64_t seed) {
  Attempt attempt;
  attempt.way = way;
  Trouble trouble;
  Stopwatch watch;
  trouble.run([&] {
    route.prepare();
    for (const ProbeRound& round : probe_rounds(options)) {
      if (round.is_checked) {
        route.fill_first(++seed, round.bytes);
        route.there(round.bytes);
        route.check_second(seed, round.bytes);
        route.fill_second(++seed, round.bytes);
        route.back(round.bytes);
        route.check_first(seed, round.bytes);
        continue;
      }
      watch.start();
      route.there(round.bytes);
      route.back(round.bytes);
      watch.stop(round, 2);
    }
  });
  attempt.works = !trouble.text();
  attempt.reason = trouble.text().value_or("");
  attempt.latency_us = watch.latency_us();
  attempt.rate = watch.rate();
  return attempt;
}

Attempt try_way(Way way, ProbedPlace& first, ProbedPlace& second, const ProbeOptions& options,
                std::uint64_t seed) {
  if (first.place().is_host()) {
    HostRoute route(way, first.place(), second);
    return try_route(way, route, options, seed);
  }
  if (way == Way::peer) {
    PeerRoute route(first, second);
    return try_route(way, route, options, seed);
  }
  StagedRoute route(way, first, second);
  return try_route(way, route, options, seed);
}

}  // namespace

std::vector<PairReport> probe_within_node(const std::vector<std::unique_ptr<ProbedPlace>>& places,
                                          const ProbeOptions& options, std::uint64_t seed) {
  std::vector<PairReport> reports;
  for (std::size_t f = 0; f < places.size(); ++f) {
    for (std::size_t s = f + 1; s < places.size(); ++s) {
      PairReport pair{places[f]->place(), places[s]->place(), Nearness::node, {}};
      for (const Way way : ways_between(pair.first, pair.second, pair.nearness)) {
        seed += 0x10000;
        pair.attempts.push_back(try_way(way, *places[f], *places[s], options, seed));
      }
      reports.push_back(std::move(pair));
    }
  }
  return reports;
}

}  // namespace heddle
