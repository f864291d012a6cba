#include "node-runtime/machine/measuring_child.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <fmt/core.h>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

template <std::size_t Size>
void put_text(std::array<char, Size>& to, std::string_view text) {
  const std::size_t length = std::min(text.size(), Size - 1);
  std::copy_n(text.data(), length, to.data());
  to.at(length) = '\0';
}

/// Tiles that the kernels run on: a well-conditioned symmetric one, its factor, and two of
/// harmless values.
class Workload {
 public:
  explicit Workload(std::int64_t tile) : n_(tile) {
    const auto size = static_cast<std::size_t>(n_ * n_);
    for (auto* values : {&symmetric_, &factor_, &left_, &right_, &result_}) values->resize(size);
    for (std::int64_t j = 0; j < n_; ++j) {
      for (std::int64_t i = 0; i < n_; ++i) {
        const auto at = static_cast<std::size_t>(i + j * n_);
        const double close = 1 / (1 + static_cast<double>(std::abs(i - j)));
        symmetric_[at] = i == j ? static_cast<double>(n_) : close;
        left_[at] = 0.5 - static_cast<double>((i * 7 + j * 13) % 31) / 31;
        right_[at] = 0.5 - static_cast<double>((i * 11 + j * 5) % 29) / 29;
      }
    }
    factor_ = symmetric_;
    static_cast<void>(kernel::potrf.host({std::span(&(tiles_[0] = view(factor_)), 1), piece_}));
  }

  /// Seconds of each of compared_kernels.
  ComparedValues run() {
    result_ = symmetric_;
    const double potrf = time(kernel::potrf, piece_, {view(result_)});
    result_ = left_;
    const double trsm = time(kernel::trsm, piece_, {view(result_), view(factor_)});
    const double syrk = time(kernel::syrk, piece_, {view(result_), view(left_)});
    const double gsmm = time(kernel::gsmm, update_, {view(result_), view(left_), view(right_)});
    return {gsmm, syrk, trsm, potrf};
  }

 private:
  [[nodiscard]] TileView view(std::vector<double>& values) const {
    return {values.data(), n_, n_, n_};
  }

  double time(const Kernel& kernel, const KernelParameters& parameters,
              std::initializer_list<TileView> tiles) {
    std::ranges::copy(tiles, tiles_.begin());
    const Clock::time_point begin = Clock::now();
    static_cast<void>(kernel.host({std::span(tiles_).first(tiles.size()), parameters}));
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  std::int64_t n_;
  KernelParameters piece_{kernel::PieceParameters{0}};
  KernelParameters update_{kernel::UpdateParameters{0}};
  std::array<TileView, 3> tiles_;
  std::vector<double> symmetric_, factor_, left_, right_, result_;
};

ComparedValues best_of_two(Workload& workload) {
  const ComparedValues first = workload.run();
  return least_of(first, workload.run());
}

MeasuringChild::Hello load_and_describe(const BlasOptions& options) {
  MeasuringChild::Hello hello;
  try {
    const Blas& loaded = load_blas(options);
    put_text(hello.version, loaded.version);
    put_text(hello.core_name, loaded.core_name);
    put_text(hello.configuration, loaded.configuration);
    hello.ok = true;
  } catch (const std::exception& error) {
    put_text(hello.error, error.what());
  }
  return hello;
}

/// The child's whole life. Returns when the parent closes its end.
void serve(const Conversation& parent, const BlasOptions& options, std::int64_t tile) {
  // The library's own choice is what it takes without advice from the environment.
  ::unsetenv("OPENBLAS_CORETYPE");
  const MeasuringChild::Hello hello = load_and_describe(options);
  if (!parent.send_value(hello) || !hello.ok || tile == 0) return;
  Workload workload(tile);
  for (std::int32_t thread = 0; parent.receive_value(thread, Conversation::always);) {
    pin_current_thread(std::array{CpuCore{{thread}}});
    if (!parent.send_value(best_of_two(workload))) return;
  }
}

}  // namespace

ComparedValues least_of(const ComparedValues& a, const ComparedValues& b) {
  ComparedValues least{};
  std::ranges::transform(a, b, least.begin(), [](double x, double y) { return std::min(x, y); });
  return least;
}

MeasuringChild::MeasuringChild(const BlasOptions& options, std::int64_t tile)
    : process_("measure kernels in",
               [&](const Conversation& parent) { serve(parent, options, tile); }) {}

bool MeasuringChild::greet() {
  if (!greeted_) {
    greeted_ = true;
    if (!process_.conversation().receive_value(hello_, patience)) hello_.ok = false;
  }
  return hello_.ok;
}

void MeasuringChild::greet_or_throw() {
  if (greet()) return;
  if (hello_.error.front() != '\0') throw Error(ErrorCode::usage, hello_.error.data());
  throw Error(ErrorCode::internal,
              fmt::format("the process that loads OpenBLAS to measure it died or was silent for {} "
                          "s",
                          patience.count()));
}

std::optional<ComparedValues> MeasuringChild::measure(std::int32_t hardware_thread) {
  ComparedValues seconds = unmeasured;
  const Conversation& child = process_.conversation();
  if (!child.send_value(hardware_thread) || !child.receive_value(seconds, patience)) {
    return std::nullopt;
  }
  return seconds;
}

}  // namespace heddle
