#include "node-runtime/machine/kernel_sets.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/kernel_case.hpp"
#include "node-runtime/machine/measuring_child.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t measured_tile = 320;
constexpr std::size_t rounds_max = 12;
constexpr std::size_t rounds_min = 3;
/// No further round begins after this; a round takes a few milliseconds per set.
constexpr auto measuring_time = std::chrono::milliseconds(500);
constexpr double same_rate = 0.97;
/// What is measured is one core with all of a machine's memory and no neighbours. OpenBLAS has a
/// lock on its work memory: potrf of 128 on each of 31 workers ran at a fifteenth of one worker's
/// rate, trsm at 0.6. It has to be faster by more than what it loses so.
constexpr double library_lead_min = 1.1;

/// A set that is being measured.
struct Candidate {
  Candidate(const std::string& name, bool own, std::unique_ptr<MeasuringChild> running)
      : child(std::move(running)) {
    set.name = name;
    set.own = own;
  }

  KernelSet set;
  std::unique_ptr<MeasuringChild> child;
  ComparedValues best = unmeasured;
};

KernelRates rates_of(const ComparedValues& seconds, std::int64_t tile) {
  KernelRates rates{};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    rates[i] = flops_of(*compared_kernels[i].kernel, tile, tile) / seconds[i] * 1e-9;
  }
  return rates;
}

/// Starts a child for every set but the library's own, whose child runs already.
std::vector<Candidate> start_candidates(std::unique_ptr<MeasuringChild> own_choice) {
  const std::string own_name = own_choice->hello().core_name.data();
  std::vector<Candidate> result;
  result.emplace_back(own_name, false, std::move(own_choice));
  const auto start = [&](const std::string& name, bool own, const BlasOptions& options) {
    result.emplace_back(name, own, std::make_unique<MeasuringChild>(options, measured_tile));
  };
  for (const std::string& name : runnable_core_types()) {
    if (name != own_name) start(name, false, {name, "openblas"});
  }
  for (const MicroKernels* kernels : micro_kernels()) {
    const std::string name(kernels->name);
    start(name, true, {"", name});
  }
  // A library without the set (or built for one set only) takes another one and says so.
  std::erase_if(result, [](Candidate& candidate) {
    if (!candidate.child->greet()) return true;
    return !candidate.set.own &&
           std::string_view(candidate.child->hello().core_name.data()) != candidate.set.name;
  });
  return result;
}

}  // namespace

std::vector<std::string> runnable_core_types() {
  std::vector<std::string> result;
#if defined(__x86_64__)
  const auto has = [](bool feature, const char* name, std::vector<std::string>& names) {
    if (feature) names.emplace_back(name);
  };
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool avx512 =
      avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0;
  has(__builtin_cpu_supports("avx") != 0, "SANDYBRIDGE", result);
  has(avx2, "HASWELL", result);
  has(avx2, "ZEN", result);
  has(avx512, "SKYLAKEX", result);
  has(avx512 && __builtin_cpu_supports("avx512bf16") != 0, "COOPERLAKE", result);
#endif
  return result;
}

double cholesky_rate(const KernelRates& rates) {
  double work = 0;  // in units of tile^3
  double time = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const ComparedKernel& compared = compared_kernels[i];
    const double flops = compared.count * flops_of(*compared.kernel, 1, 1);
    work += flops;
    time += flops / rates[i];
  }
  return work / time;
}

const KernelSet* KernelChoice::find(const std::string& name) const {
  const auto found = std::ranges::find(sets, name, &KernelSet::name);
  return found == sets.end() ? nullptr : &*found;
}

const KernelSet* KernelChoice::own() const {
  const auto kernels = TileKernels::parse(tile_kernels);
  const KernelSet* set = kernels ? find(kernels->set) : nullptr;
  return set != nullptr && set->own ? set : nullptr;
}

bool KernelChoice::is_valid() const {
  const auto positive = [](double x) { return std::isfinite(x) && x > 0; };
  for (const KernelSet& set : sets) {
    if (!std::ranges::all_of(set.rates, positive)) return false;
  }
  const auto is_set = [this](const std::string& name, bool own) {
    const KernelSet* set = find(name);
    return set != nullptr && set->own == own;
  };
  return tile > 0 && is_set(library_default, false) && is_set(core_type, false) &&
         (tile_kernels == "openblas" || own() != nullptr);
}

OpenBlasIdentity identify_openblas() {
  MeasuringChild child({"", "openblas"}, 0);
  child.greet_or_throw();
  return {child.hello().version.data(), child.hello().configuration.data()};
}

KernelChoice measure_blas_kernel_sets() {
  HEDDLE_CHECK(blas_presence() == BlasPresence::absent,
               "the kernel set of an OpenBLAS that is in the process already cannot be chosen");
  const Clock::time_point begin = Clock::now();
  auto own_choice = std::make_unique<MeasuringChild>(BlasOptions{"", "openblas"}, measured_tile);
  own_choice->greet_or_throw();

  KernelChoice choice;
  choice.tile = measured_tile;
  choice.library_default = own_choice->hello().core_name.data();
  std::vector<Candidate> candidates = start_candidates(std::move(own_choice));
  const std::vector<std::int32_t> hardware_threads = current_thread_binding();
  for (std::size_t round = 0; round < rounds_max; ++round) {
    if (round >= rounds_min && Clock::now() - begin > measuring_time) break;
    // All sets on one, then on another: cores of a host with other guests are not alike.
    const std::int32_t hardware_thread =
        hardware_threads[round * hardware_threads.size() / rounds_min % hardware_threads.size()];
    std::erase_if(candidates, [hardware_thread](Candidate& candidate) {
      const auto seconds = candidate.child->measure(hardware_thread);
      if (seconds) candidate.best = least_of(candidate.best, *seconds);
      return !seconds;
    });
  }
  for (Candidate& candidate : candidates) {
    candidate.set.rates = rates_of(candidate.best, measured_tile);
    choice.sets.push_back(candidate.set);
  }
  if (choice.find(choice.library_default) == nullptr) {
    throw Error(
        ErrorCode::internal,
        fmt::format("the process that measures OpenBLAS's kernels {} died or was silent for "
                    "{} s",
                    choice.library_default, MeasuringChild::patience.count()));
  }
  choose_kernels(choice);
  return choice;
}

void choose_kernels(KernelChoice& choice) {
  const KernelSet* fastest[2] = {choice.find(choice.library_default), nullptr};
  HEDDLE_CHECK(fastest[0] != nullptr, "no rates of {}", choice.library_default);
  const auto score = [](const KernelSet* set) {
    return set == nullptr ? 0.0 : cholesky_rate(set->rates);
  };
  const double own_choice = score(fastest[0]);
  for (const KernelSet& set : choice.sets) {
    const KernelSet*& best = fastest[set.own ? 1 : 0];
    if (score(&set) > score(best)) best = &set;
  }
  if (own_choice >= same_rate * score(fastest[0])) fastest[0] = choice.find(choice.library_default);
  choice.core_type = fastest[0]->name;
  choice.tile_kernels = "openblas";
  if (fastest[1] == nullptr) return;
  // An operation of a mixture runs inside potrf, too, which is little of the work.
  TileKernels mixture{fastest[1]->name, {}};
  KernelRates rates = fastest[1]->rates;
  for (std::size_t i = 0; i < mixture.of_library.size(); ++i) {
    HEDDLE_CHECK(TileKernels::operations[i] == compared_kernels[i].key);
    if (fastest[0]->rates[i] <= library_lead_min * rates[i]) continue;
    mixture.of_library[i] = true;
    rates[i] = fastest[0]->rates[i];
  }
  const bool is_mixed = !std::ranges::all_of(mixture.of_library, std::identity{});
  const bool is_slower = score(fastest[0]) >= library_lead_min * cholesky_rate(rates);
  if (is_mixed && !is_slower) choice.tile_kernels = mixture.text();
}

}  // namespace heddle
