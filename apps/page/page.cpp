#include "apps/page/page.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "apps/page/assets.hpp"
#include "apps/page/deflate.hpp"
#include "apps/page/facts.hpp"
#include "apps/page/items.hpp"
#include "apps/page/sections.hpp"
#include "replay/graph.hpp"

namespace heddle::page {

using replay::Analysis;
using replay::Graph;
using replay::IdlePart;
using replay::Interval;
using replay::RunTrace;
namespace {

using nlohmann::json;

std::string packed(std::span<const std::byte> bytes) {
  return base64(deflated(bytes));
}

std::string packed(const ByteWriter& bytes) {
  return packed(bytes.bytes());
}

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// JSON that may stand inside an element of HTML.
std::string inside_html(const json& value) {
  std::string text;
  for (const char c : text_of(value)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

/// For the page's frame: what stands beside the runs in the file.
constexpr std::uint64_t frame_bytes_per_run = 4096;

}  // namespace

const char* Page::name(Part part) {
  static constexpr std::array<const char*, part_count> names{"facts",   "tasks",     "idle",
                                                             "details", "transfers", "accesses"};
  return names.at(static_cast<std::size_t>(part));
}

Page::Page(std::string path, const PageOptions& options)
    : file_(std::move(path)), options_(options) {}

void Page::add(const RunTrace& run, const Analysis& analysis, const json& figures) {
  const std::int64_t origin_ns = run.makespan().value_or(analysis.span).start_ns;
  EncodedRun to;
  const auto part = [&](Part which) -> std::string& {
    return to.parts.at(static_cast<std::size_t>(which));
  };
  {
    const Graph graph(run, analysis.job);
    const std::string text =
        text_of(facts(run, analysis, graph.longest_path(), origin_ns, figures));
    part(Part::facts) = packed(std::as_bytes(std::span(text)));
    std::vector<IdlePart> idle;
    static_cast<void>(idleness_of(run, graph, analysis.span, &idle));
    add_tasks(to, run, idle, origin_ns);
  }
  part(Part::transfers) = packed(transfers_section(run, origin_ns));
  runs_.push_back(std::move(to));
}

/// What is of single tasks, or of several together where these are too many.
void Page::add_tasks(EncodedRun& to, const RunTrace& run, const std::vector<IdlePart>& idle,
                     std::int64_t origin_ns) const {
  const auto part = [&](Part which) -> std::string& {
    return to.parts.at(static_cast<std::size_t>(which));
  };
  const std::uint64_t room = (options_.bytes_max - assets_bytes()) / options_.runs;
  const std::uint64_t taken = part(Part::facts).size() + frame_bytes_per_run;
  std::int64_t quantum_ns = 0;
  for (;;) {
    const std::vector<Item> items = items_of(run, quantum_ns);
    part(Part::tasks) = packed(tasks_section(run, items, origin_ns));
    part(Part::idle) = packed(idle_section(run, idle, origin_ns, quantum_ns));
    const std::uint64_t bytes = part(Part::tasks).size() + part(Part::idle).size();
    if (taken + bytes <= room) {
      if (quantum_ns > 0) break;
      part(Part::details) = packed(details_section(run, items));
      part(Part::accesses) = packed(accesses_section(run, items));
      return;
    }
    if (items.size() <= run.threads.size()) break;  // as few as there can be
    // So long that the items that remain need what there is; at least twice as long as before.
    const double excess = static_cast<double>(bytes) / static_cast<double>(room);
    const auto span = static_cast<double>(run.makespan().value_or(Interval{}).ns());
    const double gap =
        span * static_cast<double>(run.threads.size()) / static_cast<double>(items.size());
    quantum_ns =
        std::max({2 * quantum_ns, std::int64_t{1}, static_cast<std::int64_t>(gap * excess)});
  }
  to.left_out.push_back(fmt::format(
      "Single tasks that began within {:.3g} us of each other on a thread are drawn as one, and "
      "shorter gaps have no cause: {} tasks were too many for this page.",
      static_cast<double>(quantum_ns) * 1e-3, run.tasks.size()));
  to.left_out.emplace_back("Tiles, priorities and what tasks waited for are not in this page.");
}

std::uint64_t Page::bytes() const {
  std::uint64_t all = assets_bytes();
  for (const EncodedRun& run : runs_) {
    all += frame_bytes_per_run;
    for (const std::string& part : run.parts) all += part.size();
  }
  return all;
}

void Page::leave_out(Part part, const std::string& what) {
  for (EncodedRun& run : runs_) {
    std::string& text = run.parts.at(static_cast<std::size_t>(part));
    if (text.empty()) continue;
    text = {};
    run.left_out.push_back(what);
  }
}

PageSummary Page::write() {
  using Choice = std::pair<Part, const char*>;
  for (const auto& [part, what] :
       {Choice{Part::accesses, "What tasks read and waited for found no room in this page."},
        Choice{Part::transfers, "Single messages and copies found no room in this page."},
        Choice{Part::details,
               "Tiles, orders and priorities of tasks found no room in this page."}}) {
    if (bytes() > options_.bytes_max) leave_out(part, what);
  }
  PageSummary summary;
  put(assets_begin());
  json index = json::array();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    json parts = json::array();
    for (std::size_t p = 0; p < part_count; ++p) {
      const std::string& text = runs_[i].parts.at(p);
      if (text.empty()) continue;
      const char* const what = name(static_cast<Part>(p));
      parts.push_back(what);
      put(fmt::format(R"(<script type="text/plain" id="run-{}-{}">)", i, what));
      put(text);
      put("</script>\n");
    }
    index.push_back({{"parts", std::move(parts)}, {"left_out", runs_[i].left_out}});
    for (const std::string& what : runs_[i].left_out) {
      if (std::ranges::find(summary.left_out, what) == summary.left_out.end()) {
        summary.left_out.push_back(what);
      }
    }
  }
  put(fmt::format(R"(<script type="application/json" id="index">{}</script>)",
                  inside_html({{"format", 1}, {"runs", std::move(index)}})) +
      "\n");
  put(assets_end());
  file_.commit();
  summary.bytes = written_;
  return summary;
}

void Page::put(const std::string& text) {
  file_.write(std::as_bytes(std::span(text)));
  written_ += text.size();
}

}  // namespace heddle::page
