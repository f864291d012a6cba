#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/core.h>
#include <map>
#include <utility>

#include "apps/report.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

constexpr std::size_t width = 80;
constexpr std::size_t label_width = 20;
constexpr std::size_t thread_rows_max = 24;  // above that, rows are summed by role

std::string counted(std::int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// "  label             text", with the text wrapped at blanks.
std::string row(std::string_view label, std::string_view text) {
  std::string out;
  constexpr std::size_t room = width - label_width - 2;
  do {
    std::size_t size = std::min(text.size(), room);
    if (size < text.size() && text[size] != ' ') {
      const auto blank = text.substr(0, size).rfind(' ');
      if (blank != std::string_view::npos) size = blank;
    }
    out += fmt::format("  {:<{}}{}\n", label, label_width, text.substr(0, size));
    text.remove_prefix(std::min(text.size(), size + (size < text.size() && text[size] == ' ')));
    label = {};
  } while (!text.empty());
  return out;
}

std::string status_text(const Report& report) {
  switch (report.status) {
    case RunStatus::ok:
      return report.nrhs > 0 ? "solved" : "factorized";
    case RunStatus::not_positive_definite:
      return fmt::format("NOT POSITIVE DEFINITE, info = {}", report.info);
    case RunStatus::rank_deficient:
      return fmt::format("RANK DEFICIENT, info = {}", report.info);
    case RunStatus::failed:
      break;
  }
  return "FAILED";
}

std::string setup_rows(const Report& report) {
  std::string out = row("status", status_text(report));
  if (!report.hint.empty()) out += row("", report.hint);
  std::string nodes = fmt::format("{} (grid {} x {}), {}", report.nodes, report.grid.rows,
                                  report.grid.columns, counted(report.cpu_workers, "CPU worker"));
  if (report.devices > 0) {
    nodes += fmt::format(" and {}",
                         counted(report.devices, fmt::format("{} device", report.device_backend)));
  }
  out += row("nodes", report.nodes == 1 ? nodes : nodes + " each");
  if (report.tile) {
    std::string tiles = fmt::format("{}", *report.tile);
    if (report.strip.value_or(0) > 0) {
      tiles += fmt::format(", strip {} in pieces of {}", *report.strip, report.small.value_or(0));
    }
    if (report.hierarchy == "on") {
      tiles += fmt::format(", divided into {} on CPUs", report.small.value_or(0));
    }
    if (report.inner) tiles += fmt::format(", inner {}", *report.inner);
    if (report.virtual_tiles) tiles += fmt::format(", virtual {}", *report.virtual_tiles);
    if (report.tree) tiles += fmt::format(", {} tree", *report.tree);
    out += row("tiles", tiles);
  }
  if (!report.blas_kernels.empty()) {
    out += row("kernels", fmt::format("OpenBLAS {}, {}", report.blas_kernels,
                                      report.machine_file
                                          ? fmt::format("machine file {}", *report.machine_file)
                                          : "no machine file"));
  }
  if (!report.reproducible) {
    out += row("reproducible", "no: dynamic placement depends on timing");
  }
  return out;
}

std::string stolen_row(const Report& report) {
  const auto share = stolen_share(report.stolen.value_or(0),
                                  static_cast<double>(report.nodes * report.cpu_workers),
                                  report.seconds.factor.value_or(0));
  if (share.value_or(0) < stolen_share_told) return {};
  return row("", fmt::format("this virtual machine's host gave {:.2f} s of its processor time, "
                             "{:.1f} % of the workers', to others meanwhile",
                             *report.stolen, 100 * *share));
}

std::string phase_rows(const Report& report) {
  const std::pair<const char*, std::optional<double>> phases[] = {
      {"start", report.seconds.start},     {"read", report.seconds.read},
      {"prepare", report.seconds.prepare}, {"factor", report.seconds.factor},
      {"solve", report.seconds.solve},     {"verify", report.seconds.verify},
      {"write", report.seconds.write},     {"total", report.seconds.total},
  };
  std::string out;
  for (const auto& [name, seconds] : phases) {
    if (!seconds) continue;
    std::string text = fmt::format("{:>10.3f}", *seconds);
    if (name == std::string_view("factor") && report.gflops) {
      text += fmt::format("   {:.1f} GFLOP/s", *report.gflops);
      if (report.efficiency && report.gemm_gflops) {
        text += fmt::format(", {:.1f} % of DGEMM's {:.1f}", 100 * *report.efficiency,
                            *report.gemm_gflops);
      }
    }
    out += row(name, text);
    if (name == std::string_view("factor") && report.seconds.overlap) {
      out +=
          row("", fmt::format("{:.3f} of them while the file was read", *report.seconds.overlap));
    }
    if (name == std::string_view("factor")) out += stolen_row(report);
  }
  if (out.empty()) return out;
  return fmt::format("\n  {:<{}}{:>10}\n", "phase", label_width, "seconds") + out;
}

std::string residual_row(std::string_view label, const std::optional<double>& value) {
  if (!value) return {};
  // Negated so that NaN is not good.
  const bool good = std::isfinite(*value) && *value < residual_limit;
  return row(label,
             fmt::format("{:>10.3g}   {}", *value,
                         good ? "ok" : fmt::format("TOO LARGE, expected < {}", residual_limit)));
}

std::string check_rows(const Report& report) {
  std::string out;
  if (report.factorization_residual || report.solution_residual) {
    out += residual_row("factor residual", report.factorization_residual);
    out += residual_row("solution residual", report.solution_residual);
  } else {
    out += residual_row("residual", report.residual);
  }
  out += residual_row("orthogonality", report.orthogonality);
  if (report.residual_norms && !report.residual_norms->empty()) {
    const auto [least, most] =
        std::minmax_element(report.residual_norms->begin(), report.residual_norms->end());
    std::string norms = fmt::format("{:>10.6g}", *least);
    if (report.nrhs > 1) {
      norms += fmt::format(" to {:.6g}, of {} right-hand sides", *most, report.nrhs);
    }
    out += row("|b - A x|", norms);
  }
  if (report.log_determinant) {
    out += row("log-determinant", fmt::format("{:>10.12g}", *report.log_determinant));
  }
  return out.empty() ? out : fmt::format("\n{}", out);
}

std::string traffic_rows(const Report& report) {
  std::string out = fmt::format("\n{}", row("tasks", fmt::format("{:>10}", report.tasks)));
  const auto moved = [&](const char* label, std::uint64_t count, std::uint64_t bytes) {
    if (count > 0) out += row(label, fmt::format("{:>10}   {}", count, format_bytes(bytes)));
  };
  moved("messages", report.messages, report.bytes_sent);
  moved("copies", report.copies, report.bytes_copied);
  if (report.tasks_lent > 0) {
    out += row("run by CPUs", fmt::format("{:>10}   of devices' tasks", report.tasks_lent));
  }
  if (report.evictions > 0) out += row("evictions", fmt::format("{:>10}", report.evictions));
  if (report.peak_bytes.host) {
    out += row("peak host memory", fmt::format("{:>10}", format_bytes(*report.peak_bytes.host)));
  }
  if (report.peak_bytes.device) {
    out +=
        row("peak device memory", fmt::format("{:>10}", format_bytes(*report.peak_bytes.device)));
  }
  return out;
}

std::string thread_row(std::string_view role, std::string_view node, const Report::Thread& thread) {
  const double all = thread.busy + thread.waiting;
  const std::string share = all > 0 ? fmt::format("{:.1f} %", 100 * thread.busy / all) : "-";
  return fmt::format("  {:<24}{:>6}{:>11.3f}{:>13.3f}{:>10}{:>12}\n", role.substr(0, 24), node,
                     thread.busy, thread.waiting, share, thread.tasks);
}

/// "worker" of "worker 3".
std::string_view role_kind(std::string_view role) {
  const auto last = role.find_last_not_of("0123456789");
  if (last == std::string_view::npos) return role;
  role = role.substr(0, last + 1);
  const auto end = role.find_last_not_of(' ');
  return end == std::string_view::npos ? role : role.substr(0, end + 1);
}

std::string thread_rows(const Report& report) {
  if (report.threads.empty()) return {};
  std::string out = fmt::format("\n  {:<24}{:>6}{:>11}{:>13}{:>10}{:>12}\n", "thread", "node",
                                "busy (s)", "waiting (s)", "busy", "tasks");
  if (report.threads.size() <= thread_rows_max) {
    for (const Report::Thread& thread : report.threads) {
      out += thread_row(thread.role, fmt::format("{}", thread.node), thread);
    }
    return out;
  }
  struct Sum {
    Report::Thread total;
    std::size_t threads = 0;
  };
  std::map<std::string, Sum, std::less<>> sums;
  for (const Report::Thread& thread : report.threads) {
    Sum& sum = sums[std::string(role_kind(thread.role))];
    sum.total.busy += thread.busy;
    sum.total.waiting += thread.waiting;
    sum.total.tasks += thread.tasks;
    ++sum.threads;
  }
  for (const auto& [role, sum] : sums) {
    out += thread_row(fmt::format("{} x {}", sum.threads, role), "all", sum.total);
  }
  return out;
}

}  // namespace

std::string final_table(const Report& report) {
  std::string title = fmt::format("heddle {}: {} of {} x {}", report.version, report.factorization,
                                  report.m, report.n);
  if (report.nrhs > 0) title += ", " + counted(report.nrhs, "right-hand side");
  return fmt::format("{}\n{}\n", title, std::string(width, '-')) + setup_rows(report) +
         phase_rows(report) + check_rows(report) + traffic_rows(report) + thread_rows(report);
}

}  // namespace heddle
