#include "node-runtime/collectives/schedule/device_ways.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/require.hpp"
#include "node-runtime/collectives/schedule/direct.hpp"
#include "node-runtime/collectives/schedule/make_schedule.hpp"

namespace heddle::collectives {
namespace {

/// A number for the GPU of a rank: one of its own where it is not known.
std::int64_t gpu_of(const Places& places, Rank rank) {
  const std::int64_t known = places[rank].gpu;
  return known == RankPlace::no_gpu ? -1 - std::int64_t{rank.value()} : known;
}

/// Bytes that pass the links of a host's devices, and how long the slowest link has them.
class LinkLoads {
 public:
  LinkLoads(const Places& places, const DeviceRates& rates) : places_(places), rates_(rates) {}

  /// From the memory of one rank's device to that of another one's. Within a device `near_bytes`
  /// count, of a copy.
  void add(Rank from, Rank to, double bytes, double near_bytes) {
    const std::int64_t a = gpu_of(places_, from);
    const std::int64_t b = gpu_of(places_, to);
    if (a == b) {
      within_[a] += near_bytes;
      return;
    }
    out_[a] += bytes;
    in_[b] += bytes;
    if (places_[from].pci_switch == places_[to].pci_switch) return;
    switch_out_[places_[from].pci_switch] += bytes;
    switch_in_[places_[to].pci_switch] += bytes;
  }
  [[nodiscard]] double seconds() const {
    const auto slowest = [](const std::map<std::int64_t, double>& bytes, double rate) {
      double most = 0;
      for (const auto& [at, load] : bytes) most = std::max(most, load);
      return rate > 0 ? most / rate : 0;
    };
    return std::max({slowest(within_, rates_.within_bytes_per_s),
                     slowest(out_, rates_.peer_bytes_per_s), slowest(in_, rates_.peer_bytes_per_s),
                     slowest(switch_out_, rates_.switch_bytes_per_s),
                     slowest(switch_in_, rates_.switch_bytes_per_s)});
  }

 private:
  const Places& places_;
  const DeviceRates& rates_;
  std::map<std::int64_t, double> within_;
  std::map<std::int64_t, double> out_;
  std::map<std::int64_t, double> in_;
  std::map<std::int64_t, double> switch_out_;
  std::map<std::int64_t, double> switch_in_;
};

class WayPredictor {
 public:
  WayPredictor(const DeviceWayQuery& query, const Places& places, const DeviceRates& rates)
      : query_(query), places_(places), rates_(rates) {
    for (Rank r{0}; r < Rank{places.size()}; ++r) {
      require(places[r].host == places[Rank{0}].host,
              "choose_device_way: rank {} is on another host than rank 0", r.value());
      if (gpus_.insert(gpu_of(places, r)).second) workers_.push_back(r);
    }
  }

  [[nodiscard]] double others() const { return places_.size() - 1; }
  /// Ranks of different processes work on one device.
  [[nodiscard]] double turn() const {
    return workers_.size() < static_cast<std::size_t>(places_.size()) ? rates_.turn_s : 0;
  }
  /// Each rank tells all others where its memory is.
  [[nodiscard]] double tell() const { return 2 * others() * rates_.note_s; }

  /// One process works on each device, so that none turns to another one.
  [[nodiscard]] double direct() const {
    const auto jobs = direct_jobs(query_.kind, places_.size(), query_.root, query_.is_in_place);
    LinkLoads loads(places_, rates_);
    const double share = query_.bytes / static_cast<double>(workers_.size());
    for (const Rank worker : workers_) {
      for (const DirectJob& job : jobs) {
        // Half a copy: what is near is read only, or written.
        for (const DirectPlace& from : job.from) loads.add(from.rank, worker, share, share / 2);
        for (const DirectPlace& to : job.to) loads.add(worker, to.rank, share, share / 2);
      }
    }
    const bool is_alone = workers_.size() == 1;
    const double more = std::max<double>(1, static_cast<double>(jobs.size())) - 1;
    return tell() + rates_.work_s + more * rates_.launch_s + (is_alone ? 0 : rates_.peer_s) +
           loads.seconds();
  }

  /// By fragments: all copies in, the reduction, all copies out, which overlap from fragment to
  /// fragment. Each copy has a note and its answer, and where a GPU is shared each stage turns it
  /// to every rank once.
  [[nodiscard]] double gsb(bool is_staged) const {
    const bool reduces = query_.kind != CollectiveKind::broadcast;
    const bool gives = query_.kind != CollectiveKind::reduce;
    const double fragments = std::max(1.0, std::ceil(query_.bytes / query_.gsb_fragment_bytes));
    const double piece = query_.bytes / fragments;
    const auto copies = [&](bool is_out) {
      LinkLoads loads(places_, rates_);
      for (Rank r{0}; r < Rank{places_.size()}; ++r) {
        if (r == query_.root) continue;
        is_out ? loads.add(query_.root, r, piece, piece) : loads.add(r, query_.root, piece, piece);
      }
      const double notes = 2 * others() * rates_.note_s;
      if (!is_staged) return notes + rates_.work_s + rates_.peer_s + loads.seconds();
      // Down on each member's device, a message, up on the leader's, or the other way round.
      const double leader = is_out ? rates_.to_host_bytes_per_s : rates_.to_device_bytes_per_s;
      const double member = is_out ? rates_.to_device_bytes_per_s : rates_.to_host_bytes_per_s;
      const double times = is_out ? 1 : others();  // the result comes to the host once
      return notes + 2 * rates_.work_s + piece / member +
             others() * piece / rates_.host_bytes_per_s + times * piece / leader;
    };
    const double in = reduces ? copies(false) : 0;
    const double out = gives ? copies(true) : 0;
    const double reduction =
        rates_.work_s + (others() + 2) * piece / (2 * rates_.within_bytes_per_s);
    const double turns = turn() * (others() * ((reduces ? 1 : 0) + (gives ? 1 : 0)) + 1);
    return in + reduction + out + turns +
           (fragments - 1) * (std::max({in, reduction, out}) + turns);
  }

  [[nodiscard]] double steps() const {
    const double seconds =
        seconds_of_steps(*query_.steps, *query_.chosen, rates_of_device_memory(rates_));
    return std::max(seconds, load_of_steps());
  }

 private:
  /// What the slowest link has of all messages.
  [[nodiscard]] double load_of_steps() const {
    const ScheduleKey key = key_of(query_.kind, query_.root.value(), *query_.chosen);
    const double block = query_.bytes / message_parts(key, places_.size());
    const Levels levels(places_);
    LinkLoads loads(places_, rates_);
    for (Rank r{0}; r < Rank{places_.size()}; ++r) {
      for (const Step& step : make_schedule(key, r, places_, levels).steps) {
        if (step.kind == Step::Kind::send) loads.add(r, step.peer, block, block);
      }
    }
    return loads.seconds();
  }

  const DeviceWayQuery& query_;
  const Places& places_;
  const DeviceRates& rates_;
  std::set<std::int64_t> gpus_;
  std::vector<Rank> workers_;  ///< the first on each GPU
};

bool has_buffer(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::all_reduce;
}

}  // namespace

double DeviceWayChoice::seconds_of(PredictedWay way) const {
  const auto found = std::ranges::find(considered, way, &Candidate::way);
  return found == considered.end() ? 0 : found->seconds;
}

DeviceWayChoice choose_device_way(const DeviceWayQuery& query, const Places& places,
                                  const DeviceRates& rates) {
  const WayPredictor predictor(query, places, rates);
  DeviceWayChoice choice;
  choice.tell_s = predictor.tell();
  const std::string_view no_buffer =
      has_buffer(query.kind) ? query.no_direct : "the operation has none";
  // Equal times: the first one is taken.
  choice.considered = {
      {PredictedWay::direct, query.no_direct.empty() ? predictor.direct() : 0, query.no_direct},
      {PredictedWay::gsb, no_buffer.empty() ? predictor.gsb(false) : 0, no_buffer},
      {PredictedWay::staged, no_buffer.empty() ? predictor.gsb(true) : 0, no_buffer},
      {PredictedWay::steps, predictor.steps(), {}}};
  std::ranges::stable_sort(choice.considered, [](const auto& a, const auto& b) {
    if (a.lacks.empty() != b.lacks.empty()) return a.lacks.empty();
    return a.lacks.empty() && a.seconds < b.seconds;
  });
  return choice;
}

double seconds_of_steps(const CollectiveQuery& query, const CollectiveChoice& choice,
                        const CollectiveRates& rates) {
  CollectiveOverrides same;
  same.trees = choice.trees;
  same.all_reduce = choice.all_reduce;
  same.all_to_all = choice.all_to_all;
  same.fragment_bytes = static_cast<std::int64_t>(choice.fragment_bytes);
  return choose_collective(query, rates, same).seconds;
}

CollectiveChoice steps_for_both(const CollectiveQuery& query, CollectiveChoice for_hosts,
                                const CollectiveChoice& for_devices, const CollectiveRates& host,
                                const CollectiveRates& device) {
  const double seconds = seconds_of_steps(query, for_devices, host);
  const double loss_on_hosts = seconds / for_hosts.seconds;
  const double loss_on_devices = seconds_of_steps(query, for_hosts, device) / for_devices.seconds;
  // Not a number, where nothing takes time, loses nothing.
  const bool is_for_devices = loss_on_devices > loss_on_hosts;
  if (!is_for_devices) return for_hosts;
  CollectiveChoice chosen = for_devices;
  chosen.seconds = seconds;
  chosen.considered = {{for_devices.text(), seconds}};
  for (CollectiveChoice::Candidate& other : for_hosts.considered) {
    if (other.text != for_devices.text()) chosen.considered.push_back(std::move(other));
  }
  return chosen;
}

CollectiveRates rates_of_device_memory(const DeviceRates& rates) {
  // A message is announced, read by the receiver's device, and its end told.
  constexpr double notes = 2;
  CollectiveRates made;
  const double each_s = notes * rates.note_s + rates.work_s;
  const auto at = [&](Level level) -> LevelRates& {
    return made.levels.at(static_cast<std::size_t>(level));
  };
  const auto fill = [](LevelRates& to, double seconds, double bytes_per_s) {
    to = {seconds, bytes_per_s, 0, seconds, bytes_per_s};
  };
  fill(at(Level::gpu), each_s + rates.turn_s, rates.within_bytes_per_s);
  fill(at(Level::socket), each_s + rates.peer_s, rates.peer_bytes_per_s);
  fill(at(Level::host), each_s + rates.peer_s, rates.peer_bytes_per_s);
  fill(at(Level::network), each_s + rates.peer_s, rates.peer_bytes_per_s);
  // Read twice and written once; a copy reads and writes.
  made.reduced_bytes_per_s = rates.within_bytes_per_s * 2 / 3;
  return made;
}

}  // namespace heddle::collectives
