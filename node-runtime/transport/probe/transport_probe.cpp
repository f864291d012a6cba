#include "node-runtime/transport/probe/transport_probe.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "node-runtime/transport/probe/local_probe.hpp"
#include "node-runtime/transport/probe/remote_probe.hpp"
#include "node-runtime/transport/probe/schedule.hpp"

namespace heddle {

TransportProbe::TransportProbe(const Communicator& communicator,
                               const std::vector<std::unique_ptr<Device>>& devices,
                               const ProbeOptions& options)
    : communicator_(communicator), options_(options) {
  HEDDLE_CHECK(options.checked_bytes <= options.timed_bytes, "{} > {}", options.checked_bytes,
               options.timed_bytes);
  const std::int32_t node = communicator.rank();
  places_.push_back(std::make_unique<ProbedPlace>(ProbePlace{node, ProbePlace::host}, options));
  for (const auto& device : devices) {
    const auto number = static_cast<std::int32_t>(places_.size()) - 1;
    places_.push_back(std::make_unique<ProbedPlace>(ProbePlace{node, number}, *device, options));
  }
}

TransportProbe::~TransportProbe() = default;

std::vector<PairReport> TransportProbe::run(
    const std::function<void(std::size_t round, std::size_t rounds)>& tell) {
  const std::int32_t self = communicator_.rank();
  const std::vector<std::string> hosts =
      communicator_.size() == 1 ? std::vector<std::string>(1) : communicator_.hosts();
  const auto rounds = probing_rounds(hosts);
  // The others' round lasts as long as everything in it that may be given up, if the worst happens.
  const std::vector<std::uint64_t> counts = communicator_.all_gather(places_.size());
  const auto places_max = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const double round_seconds_max =
      options_.message_seconds_max + 8 * options_.device_seconds_max * places_max * places_max;
  std::vector<PairReport> reports;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    if (tell) tell(r, rounds.size());
    const auto mine = std::find_if(rounds[r].begin(), rounds[r].end(), [&](const NodePair& pair) {
      return pair.first == self || pair.second == self;
    });
    if (mine != rounds[r].end()) {
      const auto seed = static_cast<std::uint64_t>(now_ns());
      const std::int32_t other = mine->first == self ? mine->second : mine->first;
      std::vector<PairReport> found =
          other == self ? probe_within_node(places_, options_, seed)
                        : RemoteProbe(communicator_, other, places_, options_, seed).run();
      reports.insert(reports.end(), std::make_move_iterator(found.begin()),
                     std::make_move_iterator(found.end()));
    }
    communicator_.wait_for_all(round_seconds_max);
  }
  return reports;
}

}  // namespace heddle
