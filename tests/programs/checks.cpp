#include "tests/programs/checks.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <set>

namespace heddle::simulation {

using protocol::Access;
using protocol::AccessMode;
using protocol::TileId;

namespace {

constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

/// Version `number` of a tile, as `node` reads it.
using Reading = std::tuple<TileId, Version, NodeId>;

TaskName name_of(const Call& call, const MatrixTable& table) {
  TaskName name{call.kernel, call.parameters, call.info_base, {}};
  for (std::size_t i = 0; i < call.accesses.size(); ++i) {
    if (!table.has_names(call.accesses[i].tile.matrix)) continue;
    name.accesses.push_back(call.meant[i]);
  }
  return name;
}

std::string at(std::size_t node, std::size_t index, const Call& call) {
  return fmt::format("node {}, call {}: {}", node, index, describe(call));
}

/// Calls `each` for what tasks on each node read of tiles elsewhere.
template <class Each>
void for_remote_reads(const RecordedJob& job, Each each) {
  for (std::size_t p = 0; p < job.nodes.size(); ++p) {
    const NodeId me{static_cast<std::int32_t>(p)};
    for (const Call& call : job.nodes[p]) {
      if (call.kind != Step::Kind::append) continue;
      for (std::size_t i = 0; i < call.accesses.size(); ++i) {
        const Access& access = call.accesses[i];
        if (access.mode == AccessMode::write || access.home.node == me) continue;
        each(Reading{access.tile, call.versions[i], me}, call);
      }
    }
  }
}

}  // namespace

SequentialOrder::SequentialOrder(const RecordedJob& job, const MatrixTable& table) {
  for (std::size_t i = 0; i < job.nodes.front().size(); ++i) {
    const Call& call = job.nodes.front()[i];
    if (call.is_move) continue;
    if (call.kind == Step::Kind::append && !positions_.emplace(name_of(call, table), i).second) {
      defect_ = at(0, i, call) + " has the name of an earlier task";
    }
  }
}

std::size_t SequentialOrder::position(const Call& call, const MatrixTable& table) const {
  const auto found = positions_.find(name_of(call, table));
  return found == positions_.end() ? nowhere : found->second;
}

std::string SequentialOrder::check_tasks(const RecordedJob& job, const MatrixTable& table) const {
  if (!defect_.empty()) return defect_;
  std::set<std::size_t> seen;
  for (std::size_t p = 0; p < job.nodes.size(); ++p) {
    for (std::size_t i = 0; i < job.nodes[p].size(); ++i) {
      const Call& call = job.nodes[p][i];
      if (call.kind != Step::Kind::append || call.is_move) continue;
      const std::size_t where = position(call, table);
      if (where == nowhere) return at(p, i, call) + " is no task of the sequential program";
      if (!seen.insert(where).second) return at(p, i, call) + " is inserted twice";
    }
  }
  for (const auto& [name, where] : positions_) {
    if (!seen.contains(where)) {
      return fmt::format("no node inserts task {} of the sequential program, {}", where,
                         name.kernel);
    }
  }
  return {};
}

std::string SequentialOrder::check_order(const RecordedJob& job, const MatrixTable& table) const {
  for (std::size_t p = 0; p < job.nodes.size(); ++p) {
    std::size_t before = 0;
    for (std::size_t i = 0; i < job.nodes[p].size(); ++i) {
      const Call& call = job.nodes[p][i];
      if (call.kind != Step::Kind::append || call.is_move) continue;
      const std::size_t where = position(call, table);
      if (where < before) {
        return fmt::format(
            "{} stands behind position {} of the sequential program, but its place "
            "there is {}",
            at(p, i, call), before, where);
      }
      before = where;
    }
  }
  return {};
}

std::string SequentialOrder::check_readers(const RecordedJob& job, const MatrixTable& table,
                                           bool announces_temporaries) const {
  std::map<Reading, std::pair<std::size_t, std::int32_t>> first_reads;  // position and priority
  for_remote_reads(job, [&](const Reading& reading, const Call& call) {
    const std::pair read(position(call, table), call.priority);
    const auto [entry, fresh] = first_reads.emplace(reading, read);
    if (!fresh) entry->second = std::min(entry->second, read);
  });
  std::map<std::pair<TileId, Version>, std::map<std::size_t, protocol::Reader>> expected;
  for (const auto& [reading, first] : first_reads) {
    const auto& [tile, number, node] = reading;
    expected[{tile, number}][first.first] = {node, first.second};
  }
  for (const auto& [version, readers] : job.readers) {
    const auto& [tile, number] = version;
    std::vector<protocol::Reader> found;
    for (const auto& [where, reader] : expected[version]) found.push_back(reader);
    const bool may_be_left_out = announces_temporaries && table.is_temporary(tile.matrix);
    if (readers == found || (readers.empty() && may_be_left_out)) continue;
    std::string text = fmt::format("the readers of tile {} of matrix {} version {} are (node,",
                                   tile.index, tile.matrix.value(), number.value());
    text += " priority)";
    for (const protocol::Reader& r : found) {
      text += fmt::format(" ({}, {})", r.node.value(), r.priority);
    }
    text += "; JobSpec::readers says";
    for (const protocol::Reader& r : readers) {
      text += fmt::format(" ({}, {})", r.node.value(), r.priority);
    }
    return text;
  }
  return {};
}

std::string check_announcements(const RecordedJob& job) {
  std::set<Reading> needed;
  for_remote_reads(job,
                   [&](const Reading& reading, const Call& /*call*/) { needed.insert(reading); });
  std::set<Reading> announced;
  for (std::size_t p = 0; p < job.nodes.size(); ++p) {
    for (std::size_t i = 0; i < job.nodes[p].size(); ++i) {
      const Call& call = job.nodes[p][i];
      if (call.kind == Step::Kind::publish) {
        const auto readers = job.readers.find({call.accesses.front().tile, call.versions.front()});
        if (readers == job.readers.end()) return at(p, i, call) + ", whose readers are not known";
        for (const protocol::Reader& reader : readers->second) {
          announced.emplace(call.accesses.front().tile, call.versions.front(), reader.node);
        }
      }
      if (call.kind != Step::Kind::announce) continue;
      const Reading reading{call.accesses.front().tile, call.versions.front(), call.reader};
      if (!needed.contains(reading)) return at(p, i, call) + ", which does not read it";
      announced.insert(reading);
    }
  }
  for (const auto& [tile, number, reader] : needed) {
    if (announced.contains({tile, number, reader})) continue;
    return fmt::format(
        "nobody announces tile {} of matrix {} version {} to node {}, which reads it", tile.index,
        tile.matrix.value(), number.value(), reader.value());
  }
  return {};
}

std::string check_releases(const RecordedJob& job, const MatrixTable& table) {
  for (std::size_t p = 0; p < job.nodes.size(); ++p) {
    std::set<std::pair<TileId, Version>> released;
    for (std::size_t i = 0; i < job.nodes[p].size(); ++i) {
      const Call& call = job.nodes[p][i];
      for (std::size_t a = 0; a < call.accesses.size(); ++a) {
        const Access& access = call.accesses[a];
        const bool here = access.home.node == NodeId{static_cast<std::int32_t>(p)};
        if (here && !table.is_temporary(access.tile.matrix)) continue;
        const auto version = std::pair(access.tile, call.versions[a]);
        if (call.kind == Step::Kind::release) {
          released.insert(version);
        } else if (access.mode != AccessMode::write && released.contains(version)) {
          return at(p, i, call) + " uses a version that was released";
        }
      }
    }
  }
  return {};
}

}  // namespace heddle::simulation
