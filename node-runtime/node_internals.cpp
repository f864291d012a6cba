#include "node-runtime/node_internals.hpp"

#include <array>
#include <cmath>
#include <exception>

#include "node-runtime/node_parts.hpp"

namespace heddle {

std::vector<std::string> NodeInternals::explained_messages() const {
  return parts_.explanations.texts();
}

trace::ClockOffset NodeInternals::clock_offset() const {
  return parts_.clock;
}

Engine& NodeInternals::engine() const {
  return *parts_.engine;
}

void NodeInternals::bind_beside_workers() const noexcept {
  try {
    if (!parts_.cores_of_others.empty()) pin_current_thread(parts_.cores_of_others);
  } catch (const std::exception&) {
    // It computes nothing that depends on where it runs.
  }
}

trace::Recorder& NodeInternals::recorder() const {
  return parts_.recorder;
}

TileStore& NodeInternals::store() const {
  return *parts_.store;
}

trace::ClockOffset NodeInternals::compare_clocks() const {
  constexpr int rounds = 20;
  constexpr double high_part = 4294967296.0;  // in two doubles that are exact
  const int rank = parts_.facts.rank;
  const bool is_first = rank == 0;
  const std::vector<std::string>& hosts = parts_.communicator.hosts();
  struct Stay {
    std::int64_t came_ns = 0;
    std::int64_t left_ns = 0;
  };
  Stay mine;
  trace::ClockBounds bounds;
  // Each round tells when node 0 came to the one before, and left it.
  for (int round = 0; round <= rounds; ++round) {
    const Stay before = mine;
    std::array<double, 4> first{};
    const auto split = [&](std::size_t at, std::int64_t ns) {
      first.at(at) = std::floor(static_cast<double>(ns) / high_part);
      first.at(at + 1) =
          static_cast<double>(ns - static_cast<std::int64_t>(first.at(at) * high_part));
    };
    if (is_first) {
      split(0, before.came_ns);
      split(2, before.left_ns);
    }
    mine.came_ns = trace::now_ns();
    parts_.all_reduce(first, Reduction::sum);
    mine.left_ns = trace::now_ns();
    const auto joined = [&](std::size_t at) {
      return static_cast<std::int64_t>(first.at(at) * high_part) +
             static_cast<std::int64_t>(first.at(at + 1));
    };
    if (round > 0) bounds.add(joined(0), joined(2), before.came_ns, before.left_ns);
  }
  // Nodes of one host have the same clock.
  const bool is_same = hosts.empty() || hosts.at(static_cast<std::size_t>(rank)) == hosts.front();
  return {mine.left_ns, is_same ? 0 : bounds.offset_ns()};
}

std::shared_ptr<UserMessages> NodeInternals::user_messages() const {
  return parts_.user_messages();
}

std::shared_ptr<collectives::GroupCore> NodeInternals::group_of_all() const {
  if (parts_.world == nullptr) parts_.world = parts_.make_world();
  return parts_.world;
}

std::vector<ThreadReport> NodeInternals::threads() const {
  std::vector<ThreadReport> reports;
  for (const trace::ThreadTrace* thread : parts_.recorder.threads()) {
    if (thread->name() == trace::divided_row) continue;
    const trace::ThreadTotals t = thread->totals();
    reports.push_back({thread->name(), static_cast<double>(t.busy_ns) * 1e-9,
                       static_cast<double>(t.waiting_ns) * 1e-9,
                       static_cast<std::int64_t>(t.tasks)});
  }
  return reports;
}

const protocol::JobCounters& JobInternals::counters() const {
  return record_.counters;
}
const std::vector<std::int32_t>& JobInternals::blocks_minimum() const {
  return record_.blocks_minimum;
}
const std::vector<std::vector<protocol::MatrixId>>& JobInternals::takers() const {
  return record_.takers;
}
std::int64_t JobInternals::tasks_planned() const {
  return record_.tasks_planned;
}
std::int32_t JobInternals::number() const {
  return record_.id.value();
}

}  // namespace heddle
