#include "apps/doctor_table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "node-runtime/transport/probe/pair_groups.hpp"

namespace heddle {
namespace {

constexpr std::size_t line_columns = 96;
constexpr std::size_t devices_listed_max = 16;

std::string doctor_row(const std::string& label, const std::string& text) {
  return fmt::format("  {:<17} {}\n", label, text);
}

/// A fact: one row if all nodes agree, else one per group of equal nodes.
std::string fact(const std::string& label, std::span<const NodeSheet> nodes,
                 const std::function<std::string(const NodeSheet&)>& tell) {
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> kinds;
  for (const NodeSheet& node : nodes) {
    const std::string text = tell(node);
    auto kind = kinds.begin();
    while (kind != kinds.end() && kind->first != text) ++kind;
    if (kind == kinds.end()) kind = kinds.insert(kind, {text, {}});
    kind->second.push_back(node.node);
  }
  if (kinds.size() == 1) return doctor_row(label, kinds[0].first);
  std::string out;
  for (const auto& [text, numbers] : kinds) {
    out += doctor_row(
        out.empty() ? label : "",
        fmt::format("node{} {}: {}", numbers.size() == 1 ? "" : "s", ranges(numbers), text));
  }
  return out;
}

std::string device_rows(std::span<const NodeSheet> nodes) {
  std::string out;
  std::size_t listed = 0;
  std::size_t all = 0;
  for (const NodeSheet& node : nodes) {
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      ++all;
      if (listed == devices_listed_max) continue;
      ++listed;
      const NodeSheet::Device& device = node.devices[d];
      out += doctor_row(
          fmt::format("device {}.{}", node.node, d),
          fmt::format("{}, {}, {}", device.name, format_bytes(device.memory_bytes), device.uuid));
    }
  }
  if (all > listed) out += doctor_row("", fmt::format("and {} more", all - listed));
  return out;
}

std::string mps_text(const NodeSheet& node) {
  const MpsPresence& mps = node.surroundings.mps;
  if (!mps.has_pipes && !mps.has_process) return fmt::format("none (no pipes in {})", mps.folder);
  if (!mps.has_pipes) {
    return fmt::format(
        "a daemon runs, but {} has no pipe of it: CUDA_MPS_PIPE_DIRECTORY must name "
        "its folder",
        mps.folder);
  }
  if (mps.is_connected) return fmt::format("this process is a client, by {}", mps.folder);
  return mps.has_process ? fmt::format("a daemon is there; CUDA connects to it by {}", mps.folder)
                         : fmt::format("pipes in {}, but no daemon can be seen", mps.folder);
}

std::string libraries_text(const NodeSheet& node) {
  if (node.cuda_toolkit.empty()) return "none: built without CUDA";
  return node.cuda_missing.empty() ? "cuBLAS and cuSOLVER can be loaded" : node.cuda_missing;
}

std::string cuda_text(const NodeSheet& node) {
  if (node.cuda_toolkit.empty()) return node.cuda_found;
  return fmt::format("{}; toolkit {}, driver {}", node.cuda_found, node.cuda_toolkit,
                     node.cuda_driver.empty() ? "none" : "for " + node.cuda_driver);
}

std::string limits_text(const NodeSheet& node) {
  const Surroundings& s = node.surroundings;
  std::string text = fmt::format(
      "locked memory {}", s.locked_bytes_max ? format_bytes(*s.locked_bytes_max) : "unlimited");
  if (s.ptrace_scope) text += fmt::format(", ptrace_scope {}", *s.ptrace_scope);
  return text;
}

std::string shared_memory_text(const NodeSheet& node) {
  const Surroundings& s = node.surroundings;
  if (!s.shared_memory_bytes) return "none";
  // Whole percent: exact values would differ between nodes that read it at different times.
  const double total = static_cast<double>(std::max<std::uint64_t>(1, *s.shared_memory_bytes));
  return fmt::format("{}, {:.0f} % free", format_bytes(*s.shared_memory_bytes),
                     100 * static_cast<double>(s.shared_memory_free_bytes) / total);
}

std::string namespaces_text(const NodeSheet& node) {
  const Surroundings& s = node.surroundings;
  return fmt::format("{}, {}, {}, {}; user {}", s.namespaces.process, s.namespaces.ipc,
                     s.namespaces.mount, s.namespaces.user, s.user);
}

/// Wraps `text` at blanks, with later lines indented.
std::string wrapped(const std::string& begin, const std::string& text) {
  std::string out = begin;
  std::size_t column = begin.size();
  std::istringstream words(text);
  bool is_first = true;
  for (std::string word; words >> word; is_first = false) {
    if (!is_first && column + 1 + word.size() > line_columns) {
      out += '\n' + std::string(begin.size(), ' ');
      column = begin.size();
      is_first = true;
    }
    out += (is_first ? "" : " ") + word;
    column += word.size() + (is_first ? 0 : 1);
  }
  return out + '\n';
}

std::string title_of(Nearness nearness) {
  switch (nearness) {
    case Nearness::node:
      return "within a node";
    case Nearness::host:
      return "between nodes of a host";
    case Nearness::apart:
      return "between hosts";
  }
  return "";
}

std::string number(double value) {
  return value < 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

/// The median, with the range if it is wide.
std::string text_of(const Spread& spread) {
  if (spread.max <= 2 * spread.min) return number(spread.median);
  return fmt::format("{} ({}..{})", number(spread.median), number(spread.min), number(spread.max));
}

std::string pair_rows(std::span<const PairReport> pairs) {
  std::string out = "\n  every pair: way, us for 8 B, GB/s\n";
  for (const PairReport& pair : pairs) {
    std::vector<std::string> tried;
    for (const Attempt& attempt : pair.attempts) {
      tried.push_back(attempt.works ? fmt::format("{} {} {}", name_of(attempt.way),
                                                  number(attempt.latency_us), number(attempt.rate))
                                    : fmt::format("{} no", name_of(attempt.way)));
    }
    out += fmt::format("    {:<14} {:<14} {}\n", to_string(pair.first), to_string(pair.second),
                       fmt::join(tried, ", "));
  }
  return out;
}

/// Numbered reasons, each once; `ways`: the paths missing because of it.
class Notes {
 public:
  [[nodiscard]] std::size_t number_of(Nearness nearness, const RefusedWay& refused) {
    const std::string key = without_numbers(refused.reason);
    const auto [entry, is_new] = numbers_.try_emplace(key, notes_.size());
    if (is_new) notes_.push_back({{}, refused.reason, false});
    Note& note = notes_[entry->second];
    note.ways.emplace(describe(refused.way, nearness));
    note.is_one_of_many =
        note.is_one_of_many || refused.reason != note.reason || refused.different > 1;
    return entry->second + 1;
  }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < notes_.size(); ++i) {
      const Note& note = notes_[i];
      out += wrapped(fmt::format("  [{}] ", i + 1),
                     fmt::format("no {}: {}{}", fmt::join(note.ways, ", no "), note.reason,
                                 note.is_one_of_many ? " (the same elsewhere with other numbers; "
                                                       "--report has all)"
                                                     : ""));
    }
    return out.empty() ? out : fmt::format("\n{}", out);
  }

 private:
  struct Note {
    std::set<std::string> ways;
    std::string reason;
    bool is_one_of_many = false;
  };
  std::map<std::string, std::size_t> numbers_;
  std::vector<Note> notes_;
};

/// A table row; if `way` is empty, the title of the rows below it.
struct Line {
  std::string places;
  std::string pairs;
  std::string way;
  std::string latency;
  std::string rate;
  std::string notes;
};

Line line_of(const PairGroup& group, Notes& notes) {
  std::vector<std::string> why;
  for (const RefusedWay& refused : group.refused) {
    std::string note = fmt::format("[{}]", notes.number_of(group.nearness, refused));
    if (why.empty() || why.back() != note) why.push_back(std::move(note));
  }
  const bool is_all = group.pairs.size() == group.kind_count;
  return {fmt::format("  {}", places_of(group)),
          is_all ? fmt::format("{}", group.kind_count)
                 : fmt::format("{} of {}", group.pairs.size(), group.kind_count),
          group.best ? std::string(describe(*group.best, group.nearness)) : "NONE",
          group.best ? text_of(group.latency_us) : "-",
          group.best ? text_of(group.rate) : "-",
          fmt::format("{}", fmt::join(why, " "))};
}

std::string text_of(const std::vector<Line>& lines) {
  const auto width = [&](std::string Line::*column) {
    std::size_t most = 0;
    for (const Line& line : lines) {
      // Titles may extend over the next columns.
      if (!line.way.empty()) most = std::max(most, (line.*column).size());
    }
    return most;
  };
  std::string out;
  for (const Line& line : lines) {
    out += fmt::format("  {:<{}}  {:>{}}  {:<{}}  {:>{}}  {:>{}}  {}", line.places,
                       width(&Line::places), line.pairs, width(&Line::pairs), line.way,
                       width(&Line::way), line.latency, width(&Line::latency), line.rate,
                       width(&Line::rate), line.notes);
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

}  // namespace

std::string facts_table(std::span<const NodeSheet> nodes) {
  std::string out;
  for (const NodeSheet& node : nodes) {
    out += doctor_row(fmt::format("node {}", node.node),
                      fmt::format("host {}, process {}, {} core{}", node.host, node.process,
                                  node.cores, node.cores == 1 ? "" : "s"));
  }
  out += fact("MPI", nodes, [](const NodeSheet& node) {
    return node.mpi ? fmt::format("{}, {}", node.mpi->library, node.mpi->thread_level)
                    : std::string("not needed: one node on its own");
  });
  if (nodes.size() > 1) {
    out += fact("within a host", nodes, [](const NodeSheet& node) {
      return node.mpi ? node.mpi->between_nodes : std::string();
    });
  }
  out += fact("devices", nodes, [](const NodeSheet& node) { return node.device_reason; });
  out += device_rows(nodes);
  out += fact("CUDA", nodes, cuda_text);
  out += fact("CUDA libraries", nodes, libraries_text);
  out += fact("MPS", nodes, mps_text);
  out += fact("namespaces", nodes, namespaces_text);
  out += fact("/dev/shm", nodes, shared_memory_text);
  return out + fact("limits", nodes, limits_text);
}

std::string ways_table(std::span<const PairReport> pairs, const ProbeOptions& options,
                       bool is_verbose) {
  if (pairs.empty()) return "\n  one host without devices: there is nothing to transfer between\n";
  Notes notes;
  std::vector<Line> lines{{"places", "pairs", "best way", "us, 8 B", "GB/s", ""}};
  std::optional<Nearness> section;
  for (const PairGroup& group : group_pairs(pairs)) {
    if (group.nearness != section) lines.push_back({title_of(group.nearness), {}, {}, {}, {}, {}});
    section = group.nearness;
    lines.push_back(line_of(group, notes));
  }
  std::string out = fmt::format("\n{}", text_of(lines));
  if (is_verbose) out += pair_rows(pairs);
  out += notes.text();
  return out + fmt::format("\n  {}\n", fmt::format("Times are an indication: medians of {} and {}, "
                                                   "one way; the rate with {} at once.",
                                                   options.repeats, options.long_repeats,
                                                   format_bytes(options.timed_bytes)));
}

}  // namespace heddle
