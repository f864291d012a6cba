#include <algorithm>
#include <cstddef>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "apps/report.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

constexpr std::size_t width_default = 80;
constexpr double known_after_seconds = 0.2;  // the rate before that is dominated by start-up

/// A line in the last column would wrap and could not be overwritten.
std::size_t usable_width(std::FILE* stream) {
  winsize size{};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (known ? size.ws_col : width_default) - 1;
}

std::string remaining_text(double seconds) {
  return seconds < 120 ? fmt::format("{:.0f} s", seconds) : format_seconds(seconds);
}

}  // namespace

std::string progress_text(const Progress& progress) {
  const double fraction =
      progress.total > 0 ? std::clamp(progress.done / progress.total, 0.0, 1.0) : 1.0;
  std::string text = fmt::format("{}  {:2.0f} %", progress.phase, 100 * fraction);
  if (progress.elapsed_seconds < known_after_seconds || fraction <= 0) return text;
  if (!progress.rate.empty()) {
    text +=
        fmt::format("  {:.1f} {}", progress.done / progress.elapsed_seconds / 1e9, progress.rate);
  }
  const double remaining = progress.elapsed_seconds * (1 - fraction) / fraction;
  return text + fmt::format("  ETA {}", remaining_text(remaining));
}

ProgressLine::ProgressLine(std::FILE* stream)
    : stream_(stream), active_(::isatty(::fileno(stream)) == 1) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::update(const Progress& progress, Clock::time_point now) {
  if (!active_) return;
  const bool same_phase = shown_ && phase_ == progress.phase;
  if (same_phase && now - last_ < interval) return;
  const std::string text = progress_text(progress).substr(0, usable_width(stream_));
  // Not fmt::print, which throws: a run continues if its terminal is gone.
  static_cast<void>(std::fputs(fmt::format("\r{}\x1b[K", text).c_str(), stream_));
  static_cast<void>(std::fflush(stream_));
  phase_ = progress.phase;
  last_ = now;
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  shown_ = false;
  static_cast<void>(std::fputs("\r\x1b[K", stream_));
  static_cast<void>(std::fflush(stream_));
}

}  // namespace heddle
