#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// A place among those of all nodes.
struct ProbePlace {
  static constexpr std::int32_t host = -1;

  std::int32_t node = 0;
  std::int32_t device = host;  ///< of the node, or `host`

  [[nodiscard]] bool is_host() const { return device == host; }
  friend auto operator<=>(const ProbePlace&, const ProbePlace&) = default;
};

/// "host 0", "device 0.1" (of node 0).
[[nodiscard]] std::string to_string(const ProbePlace& place);

/// How far two places are from each other.
enum class Nearness : std::uint8_t {
  node,  ///< in one process
  host,  ///< two processes of one host
  apart  ///< two hosts
};

/// How bytes get from one place to another.
enum class Way : std::uint8_t {
  mapped,  ///< a device reads another process's device memory, behind that process's event
  peer,    ///< a device reads memory of another one of its process
  staged,  ///< device to page-locked host memory, between nodes a message, and on to the device
  host     ///< ordinary host memory all along, between nodes a message
};

/// "mapped", "peer", "staged", "host".
[[nodiscard]] std::string_view name_of(Way way);
/// What of one pair of places to another means, in a few words.
[[nodiscard]] std::string_view describe(Way way, Nearness nearness);

/// Ways that two places could have, best first; never empty for two places.
[[nodiscard]] std::vector<Way> ways_between(const ProbePlace& first, const ProbePlace& second,
                                            Nearness nearness);

/// The result of a transfer there and back.
struct Attempt {
  Way way = Way::host;
  bool works = false;
  std::string reason;     ///< why it does not work
  double latency_us = 0;  ///< of 8 bytes, one way; median. Like the rate an indication only
  double rate = 0;        ///< of some MiB at once, 10^9 bytes per second; median
};

/// All ways between two places, tried.
///
/// Invariant: first < second; `attempts` are those of ways_between(), in that order.
struct PairReport {
  ProbePlace first;
  ProbePlace second;
  Nearness nearness = Nearness::node;
  std::vector<Attempt> attempts;

  /// The best that works; null when none does.
  [[nodiscard]] const Attempt* best() const;
  [[nodiscard]] bool is_valid() const;
};

/// As in the report of `heddle doctor`, and back. pair_from_json() throws nlohmann's exceptions.
[[nodiscard]] nlohmann::json to_json(const PairReport& pair);
[[nodiscard]] PairReport pair_from_json(const nlohmann::json& from);

}  // namespace heddle
