#include "apps/tuning/products.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <optional>
#include <utility>
#include <vector>

#include "apps/tuning/device_bench.hpp"
#include "base/error.hpp"

namespace heddle::tuning {
namespace {

using kernel::cuda::ProductChoice;
using kernel::cuda::ProductChoices;

struct Size {
  std::int64_t tile;
  std::int32_t size_min;  ///< products from this size on take what is best for the tile
};
constexpr std::array<Size, 3> sizes{{{1024, 768}, {2048, 1536}, {4096, 3072}}};

constexpr std::int32_t candidates_max = 16;
constexpr std::size_t finalists = 3;
constexpr double brief_seconds = 0.08;
constexpr double sustained_seconds = 0.7;
constexpr double setup_seconds = 0.15;  ///< of a device, its handles and operands
constexpr double gain_min = 1.01;

struct Contender {
  ProductChoice choice;
  double seconds = 0;  ///< of a product
};

class Contest {
 public:
  Contest(std::int32_t gpu, std::string name, const NormalValues& normal, Effort& effort)
      : gpu_(gpu), name_(std::move(name)), normal_(normal), effort_(effort) {}

  /// Nothing when there is no time, or nothing to choose from.
  std::optional<ProductChoice> winner(const Size& size) {
    const ProductChoices offered = kernel::cuda::product_candidates(
        gpu_, static_cast<std::int32_t>(size.tile), candidates_max);
    const auto count = static_cast<double>(offered.size() + 1);
    const double expected = count * (setup_seconds + effort_.lasting(brief_seconds)) +
                            (finalists + 1) * (setup_seconds + effort_.lasting(sustained_seconds));
    if (offered.empty() || !effort_.allows(expected)) return std::nullopt;
    std::vector<Contender> contenders{{{.size_min = size.size_min}, 0}};
    for (const ProductChoice& kernel : offered) {
      contenders.push_back({{size.size_min, kernel.tile, kernel.stages}, 0});
    }
    for (Contender& c : contenders) run(c, size, brief_seconds);
    // The library's own choice goes on in any case: it is what others are compared with.
    std::sort(contenders.begin() + 1, contenders.end(),
              [](const Contender& a, const Contender& b) { return a.seconds < b.seconds; });
    contenders.resize(std::min(contenders.size(), finalists + 1));
    for (Contender& c : contenders) run(c, size, sustained_seconds);
    const auto best = std::min_element(
        contenders.begin(), contenders.end(),
        [](const Contender& a, const Contender& b) { return a.seconds < b.seconds; });
    return best->seconds * gain_min < contenders[0].seconds ? best->choice : contenders[0].choice;
  }

 private:
  void run(Contender& contender, const Size& size, double seconds) {
    effort_.tell(fmt::format("products of {} by kernel {}.{} of {} on {}", size.tile,
                             contender.choice.tile, contender.choice.stages,
                             kernel::cuda::product_library(), name_));
    DeviceOptions options;
    options.backend = DeviceBackend::cuda;
    options.cuda.gpus = {gpu_};
    options.cuda.memory_bytes = DeviceBench::product_bytes(size.tile) + (std::uint64_t{256} << 20);
    options.cuda.products = {{name_,
                              kernel::cuda::product_library(),
                              {{1, contender.choice.tile, contender.choice.stages}}}};
    const DeviceSet devices = make_devices(options);
    DeviceBench bench(*devices.devices[0], normal_);
    contender.seconds = bench.product_seconds(size.tile, 1, effort_.lasting(seconds));
  }

  std::int32_t gpu_;
  std::string name_;
  const NormalValues& normal_;
  Effort& effort_;
};

}  // namespace

ProductChoices without_repetitions(const ProductChoices& choices) {
  ProductChoices result;
  for (const ProductChoice& choice : choices) {
    const bool repeats = !result.empty() && result.back().tile == choice.tile &&
                         result.back().stages == choice.stages;
    if (!repeats) result.push_back(choice);
  }
  return result;
}

ProductChoices measure_products(std::int32_t gpu, const std::string& name,
                                const NormalValues& normal, Effort& effort) {
  Contest contest(gpu, name, normal, effort);
  ProductChoices choices;
  for (const Size& size : sizes) {
    if (const auto choice = contest.winner(size)) choices.push_back(*choice);
  }
  return without_repetitions(choices);
}

}  // namespace heddle::tuning
