#include "apps/tune_table.hpp"

#include <array>
#include <fmt/core.h>
#include <set>
#include <string_view>
#include <tuple>

#include "algorithms/qr/layout.hpp"
#include "apps/tuning/operands.hpp"
#include "base/units.hpp"
#include "kernels/kernel_case.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/node_facts.hpp"
#include "node-runtime/tuning.hpp"

namespace heddle {
namespace {

constexpr std::array<const Kernel*, 4> square_kernels{&kernel::potrf, &kernel::trsm, &kernel::syrk,
                                                      &kernel::gsmm};
constexpr std::array<const Kernel*, 3> panel_kernels{&kernel::geqrt, &kernel::unmqr,
                                                     &kernel::tsmqr};
constexpr std::array<std::int64_t, 4> example_sizes{1000, 4000, 16000, 64000};

const KernelTime* find(const KernelTimes& times, const Kernel& kernel, std::int64_t rows,
                       std::int64_t columns, std::int64_t inner) {
  for (const KernelTime& time : times) {
    if (time.kernel == &kernel && time.rows == rows && time.columns == columns &&
        time.inner == inner) {
      return &time;
    }
  }
  return nullptr;
}

std::string rate_text(const KernelTime* time, const Kernel& kernel) {
  if (time == nullptr) return "-";
  const double flops = flops_of(kernel, time->rows, time->columns);
  return fmt::format("{:.1f}", flops / time->microseconds * 1e-3);
}

std::string square_rows(const KernelTimes& times) {
  std::set<std::int64_t> tiles;
  for (const KernelTime& time : times) {
    if (time.inner == 0) tiles.insert(time.columns);
  }
  if (tiles.empty()) return {};
  std::string out = fmt::format("  {:<18}", "tile");
  for (const Kernel* kernel : square_kernels) out += fmt::format("{:>12}", kernel->name);
  out += '\n';
  for (const std::int64_t tile : tiles) {
    out += fmt::format("  {:<18}", tile);
    for (const Kernel* kernel : square_kernels) {
      out += fmt::format("{:>12}", rate_text(find(times, *kernel, tile, tile, 0), *kernel));
    }
    out += '\n';
  }
  return out;
}

std::string panel_rows(const KernelTimes& times) {
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> cuts;
  std::set<const Kernel*> kernels;
  for (const KernelTime& time : times) {
    if (time.inner == 0) continue;
    cuts.emplace(time.columns, time.inner, time.rows);
    kernels.insert(time.kernel);
  }
  if (cuts.empty()) return {};
  std::string out = fmt::format("  {:<18}", "panel, inner");
  for (const Kernel* kernel : panel_kernels) {
    if (kernels.contains(kernel)) out += fmt::format("{:>12}", kernel->name);
  }
  out += '\n';
  for (const auto& [columns, inner, rows] : cuts) {
    out += fmt::format("  {:<18}", fmt::format("{} x {}, {}", rows, columns, inner));
    for (const Kernel* kernel : panel_kernels) {
      if (!kernels.contains(kernel)) continue;
      out += fmt::format("{:>12}", rate_text(find(times, *kernel, rows, columns, inner), *kernel));
    }
    out += '\n';
  }
  return out;
}

std::string row(std::string_view label, const std::string& text) {
  return fmt::format("  {:<18}{}\n", label, text);
}

std::string device_rows(const DeviceMeasurement& device) {
  std::string out = fmt::format("\n{}, GFLOP/s, products on {} stream{}\n", device.name,
                                device.streams, device.streams == 1 ? "" : "s");
  out += square_rows(device.kernels) + panel_rows(device.kernels);
  for (const auto& choice : device.products) {
    out += row(fmt::format("from {} on", choice.size_min),
               choice.is_library() ? fmt::format("{}'s own choice of kernels", device.library)
                                   : fmt::format("{}'s kernel with tile {}, stages {}",
                                                 device.library, choice.tile, choice.stages));
  }
  std::string copies =
      fmt::format("{:.1f} GB/s to it, {:.1f} from it, {:.1f} both at once", device.copies.to_device,
                  device.copies.to_host, device.copies.both_ways);
  if (device.copies.to_peer) copies += fmt::format(", {:.1f} to its like", *device.copies.to_peer);
  out += row("copies", copies);
  for (const StagedCopies& one : device.group_copies) {
    out +=
        row("", fmt::format("{} of {} ranks, up to {}: {} of {} copies are staged", one.operation,
                            one.ranks, format_bytes(static_cast<std::uint64_t>(one.bytes)),
                            one.staged, one.ranks - 1));
  }
  if (!device.copies.within || !device.copies.packing || !device.copies.short_us) return out;
  return out + row("", fmt::format(
                           "{:.1f} GB/s within it, {:.1f} packing, {:.1f} us for a short one",
                           *device.copies.within, *device.copies.packing, *device.copies.short_us));
}

std::string size_rows(const NodeFacts& facts) {
  std::string cholesky = fmt::format("  {:<18}", "cholesky, tile");
  std::string qr = fmt::format("  {:<18}", "qr, tile (inner)");
  for (const std::int64_t n : example_sizes) {
    const TileLayout squares = choose_layout(n, n, {}, facts);
    const QrLayout panels = choose_qr_cut(n, n, {}, facts).layout;
    cholesky += fmt::format(
        "{:>18}", squares.strip > 0 ? fmt::format("{} (strip {})", squares.tile, squares.strip)
                                    : fmt::format("{}", squares.tile));
    qr += fmt::format("{:>18}", fmt::format("{} ({})", panels.tile, panels.inner));
  }
  return fmt::format("{}\n{}\n", cholesky, qr);
}

}  // namespace

std::string measurements_table(const Measurements& measured) {
  std::string out;
  if (measured.cpu) {
    const CpuMeasurement& cpu = *measured.cpu;
    if (cpu.workers > 1) {
      out += fmt::format("\nOne CPU worker, GFLOP/s, the others idle\n{}",
                         square_rows(cpu.one_worker));
    }
    out += fmt::format("\nEach of {} CPU worker{}, GFLOP/s, all busy\n", cpu.workers,
                       cpu.workers == 1 ? "" : "s");
    out += square_rows(cpu.all_workers) + panel_rows(cpu.all_workers);
  }
  for (const DeviceMeasurement& device : measured.devices) out += device_rows(device);
  if (measured.messages) {
    out += fmt::format(
        "\n{}",
        row("messages", fmt::format("{:.2f} us, {:.1f} GB/s from node to node over MPI",
                                    measured.messages->latency_us, measured.messages->rate)));
    if (const auto& host = measured.messages->host) {
      out += row("", fmt::format("{:.2f} us, {:.1f} GB/s packed by a core, on one host",
                                 host->note_us, host->packing));
    }
    if (const auto& reading = measured.messages->reading) {
      out += row("", fmt::format("{:.2f} us, {:.1f} GB/s reading another process's memory",
                                 reading->short_us, reading->rate));
    }
  }
  return out;
}

std::string choices_table(const NodeFacts& facts) {
  std::string out = fmt::format("\n  {:<18}", "chosen for n =");
  for (const std::int64_t n : example_sizes) out += fmt::format("{:>18}", n);
  return fmt::format("{}\n{}", out, size_rows(facts));
}

}  // namespace heddle
