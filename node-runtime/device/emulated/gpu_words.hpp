#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle {

/// What the processes on a host share of one emulated GPU: how long its links are taken, and whose
/// work it does. In the arena of the process that has the GPU first; zero at the start.
///
/// Threads and processes: any. The words of links order no other memory. A process that dies leaves
/// nothing that others wait for: links are free when their time has come, and a turn whose process
/// is gone is taken over (EmulatedTurns).
struct GpuWords {
  /// Links of a GPU, one for each direction; those of its PCI switch belong to the switch's first
  /// GPU.
  enum class Line : std::uint8_t { to_host, from_host, within, out, in, switch_out, switch_in };
  static constexpr std::size_t lines = 7;
  /// Processes that may share a GPU.
  static constexpr std::size_t sharers_max = 64;

  [[nodiscard]] std::atomic<std::int64_t>& free_at(Line line) {
    return free_at_ns[static_cast<std::size_t>(line)];
  }

  std::array<std::atomic<std::int64_t>, lines> free_at_ns;  ///< of CLOCK_MONOTONIC, by Line
  /// The sharer whose work runs, counted from 1, in the upper half; its operations under way below.
  std::atomic<std::uint64_t> turn;
  std::atomic<std::int64_t> turn_since_ns;
  std::atomic<std::int64_t> turn_ready_ns;  ///< when the GPU has turned to that sharer
  std::atomic<std::uint32_t> turn_ends;     ///< futex word, changed when `turn` gets free
  std::atomic<std::uint32_t> waiting;       ///< threads of sharers whose turn it is not
  std::array<std::atomic<std::int32_t>, sharers_max> processes;  ///< of the sharers
};

}  // namespace heddle
