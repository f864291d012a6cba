#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "node-runtime/trace/atomic_file.hpp"
#include "replay/analysis.hpp"
#include "replay/run.hpp"

namespace heddle::page {

struct PageOptions {
  std::size_t runs = 1;  ///< how many will be added: they share the size
  std::uint64_t bytes_max = std::uint64_t{20} << 20U;
};

struct PageSummary {
  std::uint64_t bytes = 0;
  std::vector<std::string> left_out;  ///< what found no room; a sentence each
};

/// A page that shows runs in a browser: one file without anything else, that loads nothing. What
/// does not fit into its size is left out, and the page says so: first what tasks read, then
/// messages and copies, then tiles and priorities, then single tasks of those that are close to
/// each other.
///
/// Use: add() each run, then write(). One thread.
class Page {
 public:
  /// Throws Error(usage) with the reason when the file cannot be made. It appears with write().
  explicit Page(std::string path, const PageOptions& options = {});

  /// `figures` is what a program reads of the analysis, JSON; the page's tables show it.
  void add(const replay::RunTrace& run, const replay::Analysis& analysis,
           const nlohmann::json& figures);

  /// The last call. Throws Error(internal) when writing fails.
  PageSummary write();

 private:
  enum class Part : std::uint8_t { facts, tasks, idle, details, transfers, accesses };
  static constexpr std::size_t part_count = 6;
  /// By part, compressed and as text; empty: left out.
  using Parts = std::array<std::string, part_count>;
  struct EncodedRun {
    Parts parts;
    std::vector<std::string> left_out;
  };

  [[nodiscard]] static const char* name(Part part);
  [[nodiscard]] std::uint64_t bytes() const;
  void leave_out(Part part, const std::string& what);
  void add_tasks(EncodedRun& to, const replay::RunTrace& run,
                 const std::vector<replay::IdlePart>& idle, std::int64_t origin_ns) const;
  void put(const std::string& text);

  trace::AtomicFile file_;
  PageOptions options_;
  std::vector<EncodedRun> runs_;
  std::uint64_t written_ = 0;
};

}  // namespace heddle::page
