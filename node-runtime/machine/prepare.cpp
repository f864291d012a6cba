#include "node-runtime/machine/prepare.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/core.h>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "node-runtime/machine/file_lock.hpp"

namespace heddle {
namespace {

/// Measuring takes about half a second; a holder that needs this long is stopped or starved.
constexpr std::chrono::seconds lock_patience{10};

/// "~/.cache/x" for "/home/me/.cache/x".
std::string short_path(const std::filesystem::path& path) {
  const char* home = std::getenv("HOME");
  std::string text = path.string();
  if (home == nullptr || *home != '/') return text;
  const std::string prefix = std::string(home) + "/";
  return text.starts_with(prefix) ? "~/" + text.substr(prefix.size()) : text;
}

/// "trsm 44.6 against 27.7 GFLOP/s": the kernel that gains most.
std::string largest_gain(const KernelRates& chosen, const KernelRates& other) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < chosen.size(); ++i) {
    if (chosen[i] * other[best] > chosen[best] * other[i]) best = i;
  }
  return fmt::format("{} {:.1f} against {:.1f} GFLOP/s", compared_kernels[best].key, chosen[best],
                     other[best]);
}

std::string explain(const OpenBlasIdentity& openblas, const KernelChoice& kernels,
                    const std::string& origin) {
  const KernelSet* chosen = kernels.find(kernels.core_type);
  std::string text = fmt::format("OpenBLAS {} kernels {} (", openblas.version, kernels.core_type);
  if (kernels.core_type == kernels.library_default) {
    text += "the library's own choice)";
  } else {
    text += fmt::format("{} with the library's own choice {})",
                        largest_gain(chosen->rates, kernels.find(kernels.library_default)->rates),
                        kernels.library_default);
  }
  if (const KernelSet* own = kernels.own(); own != nullptr) {
    text += fmt::format(", tile kernels {} ({} with OpenBLAS)", kernels.tile_kernels,
                        largest_gain(own->rates, chosen->rates));
  }
  return text + ", " + origin;
}

class Preparation {
 public:
  Preparation(const std::optional<std::filesystem::path>& named, const MachineProbes& probes)
      : probes_(probes), host_(probes.host()), named_(named.has_value()) {
    if (named) {
      path_ = *named;
    } else if (const auto path = default_machine_file(host_)) {
      path_ = *path;
    } else {
      warn("no place for the machine file: neither XDG_CACHE_HOME nor HOME is an absolute path");
    }
  }

  MachineProfile run() {
    if (blas_presence() != BlasPresence::absent) return from_process();
    const char* core_type = std::getenv("OPENBLAS_CORETYPE");
    if (core_type != nullptr && *core_type != '\0') return from_environment(core_type);
    openblas_ = probes_.identify();
    if (const auto contents = read(); contents && fits(*contents)) return use_file(*contents);
    if (named_ || path_.empty()) return use_measurement();
    return measure_and_keep();
  }

 private:
  void warn(std::string text) { profile_.warnings.push_back(std::move(text)); }

  /// The file's contents; nothing (and a warning, unless it does not exist) if it is no good.
  std::optional<MachineFile> read() {
    if (path_.empty()) return std::nullopt;
    std::error_code ignored;
    if (!named_ && !std::filesystem::exists(path_, ignored)) return std::nullopt;
    try {
      return read_machine_file(path_);
    } catch (const Error& error) {
      if (named_) throw;
      warn(fmt::format("{}; measuring again", error.what()));
      return std::nullopt;
    }
  }

  /// True when the rates hold here; otherwise warns. A file that the user named may come from
  /// another host with the same processor.
  bool fits(const MachineFile& contents) {
    const auto differs = [&](const char* what, const std::string& theirs, const std::string& ours) {
      if (theirs == ours) return false;
      warn(fmt::format(
          "machine file {} was measured with {} '{}', here it is '{}'; measuring again{}",
          path_.string(), what, theirs, ours,
          named_ ? " for this run (`heddle tune` writes a new file)" : ""));
      return true;
    };
    return !((!named_ && differs("host", contents.host, host_.name)) ||
             differs("processor", contents.cpu_model, host_.cpu_model) ||
             differs("OpenBLAS", contents.openblas.version, openblas_.version) ||
             differs("OpenBLAS", contents.openblas.configuration, openblas_.configuration) ||
             lacks_instructions(contents.kernels));
  }

  /// A virtual machine may hide instructions that the same processor offers elsewhere.
  bool lacks_instructions(const KernelChoice& kernels) {
    const auto has = [](const auto& names, const auto& name) {
      return std::ranges::find(names, name) != names.end();
    };
    std::vector<std::string> own{"openblas"};
    for (const MicroKernels* table : micro_kernels()) own.emplace_back(table->name);
    const auto tile_kernels = TileKernels::parse(kernels.tile_kernels);
    const bool runs = tile_kernels && has(own, tile_kernels->set) &&
                      (kernels.core_type == kernels.library_default ||
                       has(runnable_core_types(), kernels.core_type));
    if (!runs) {
      warn(fmt::format(
          "machine file {} chooses the kernels {} and {}, whose instructions are missing "
          "here; measuring again",
          path_.string(), kernels.core_type, kernels.tile_kernels));
    }
    return !runs;
  }

  void adopt(const KernelChoice& kernels, ProfileSource source, const std::string& origin) {
    profile_.source = source;
    profile_.blas = {kernels.core_type, kernels.tile_kernels};
    profile_.explanation = explain(openblas_, kernels, origin);
    profile_.kernels = kernels;
  }

  MachineProfile use_file(const MachineFile& contents) {
    adopt(contents.kernels, ProfileSource::file, "from " + short_path(path_));
    profile_.tuning = {contents.tuned, contents.measured};
    profile_.file = path_;
    return std::move(profile_);
  }

  MachineProfile use_measurement() {
    try {
      adopt(probes_.measure(), ProfileSource::measured, "measured for this run");
    } catch (const Error& error) {
      warn(fmt::format("the kernel sets could not be measured ({}); using OpenBLAS's own choice",
                       error.what()));
      profile_.explanation = fmt::format(
          "OpenBLAS {} with the library's own choice of kernels, "
          "not measured",
          openblas_.version);
    }
    return std::move(profile_);
  }

  MachineProfile measure_and_keep() {
    const auto lock = try_lock();
    // Whoever held the lock before may have measured for us.
    if (const auto contents = reread(); contents) return use_file(*contents);
    MachineProfile profile = use_measurement();
    if (!profile.kernels || !lock) return profile;
    try {
      write_machine_file(path_,
                         {host_.name, host_.cpu_model, host_.cores, openblas_, *profile.kernels});
      profile.file = path_;
      profile.explanation =
          explain(openblas_, *profile.kernels, "measured now and kept in " + short_path(path_));
    } catch (const Error& error) {
      profile.warnings.push_back(
          fmt::format("{}; the kernel sets are measured at every start", error.what()));
    }
    return profile;
  }

  /// The lock beside the file, whose folder is made; nothing and a warning if that fails.
  std::optional<FileLock> try_lock() {
    std::error_code failure;
    std::filesystem::create_directories(path_.parent_path(), failure);
    if (failure) {
      warn(
          fmt::format("cannot make the folder {} for the machine file: {}; the kernel sets are "
                      "measured at every start",
                      path_.parent_path().string(), failure.message()));
      return std::nullopt;
    }
    try {
      auto lock = FileLock::acquire(path_.string() + ".lock", lock_patience);
      if (!lock) {
        warn(fmt::format("another process has held {}.lock for {} s; measuring without it",
                         path_.string(), lock_patience.count()));
      }
      return lock;
    } catch (const Error& error) {
      warn(fmt::format("{}; the kernel sets are measured at every start", error.what()));
      return std::nullopt;
    }
  }

  /// Reads again without a second warning about what the first reading complained of.
  std::optional<MachineFile> reread() {
    const std::vector<std::string> warnings = profile_.warnings;
    auto contents = read();
    const bool good = contents && fits(*contents);
    profile_.warnings = warnings;
    return good ? contents : std::nullopt;
  }

  /// The values of the file that do not depend on OpenBLAS, if it is of this processor.
  std::string adopt_independent_values() {
    const auto contents = read();
    if (!contents || contents->cpu_model != host_.cpu_model) return "";
    profile_.tuning = {contents->tuned, contents->measured};
    profile_.kernels = contents->kernels;
    profile_.file = path_;
    return contents->kernels.tile_kernels;
  }

  MachineProfile from_environment(const std::string& core_type) {
    profile_.source = ProfileSource::environment;
    profile_.blas.tile_kernels = adopt_independent_values();
    profile_.explanation =
        fmt::format("OpenBLAS kernels {} (OPENBLAS_CORETYPE in the environment)", core_type);
    add_tile_kernels();
    return std::move(profile_);
  }

  MachineProfile from_process() {
    profile_.source = ProfileSource::process;
    const bool ours = blas_presence() == BlasPresence::heddle;
    const std::string tile_kernels = adopt_independent_values();
    if (!ours) profile_.blas.tile_kernels = tile_kernels;
    const Blas& loaded = load_blas(profile_.blas);
    profile_.blas = {loaded.core_name, loaded.tile_kernels};
    profile_.explanation = fmt::format(
        "OpenBLAS {} kernels {} ({})", loaded.version, loaded.core_name,
        loaded.preloaded ? "loaded by the hosting program" : "loaded earlier in this process");
    add_tile_kernels();
    return std::move(profile_);
  }

  void add_tile_kernels() {
    const MicroKernels* widest = best_micro_kernels();
    std::string name = profile_.blas.tile_kernels;
    if (name.empty() && widest != nullptr) name = widest->name;
    if (!name.empty() && name != "openblas") {
      profile_.explanation += fmt::format(", tile kernels {}", name);
    }
  }

  const MachineProbes& probes_;
  Host host_;
  bool named_;
  std::filesystem::path path_;  ///< empty: there is none
  OpenBlasIdentity openblas_;
  MachineProfile profile_;
};

}  // namespace

MachineProfile prepare_machine(const std::optional<std::filesystem::path>& file,
                               const MachineProbes& probes) {
  return Preparation(file, probes).run();
}

}  // namespace heddle
