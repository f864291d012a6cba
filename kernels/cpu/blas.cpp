#include "kernels/cpu/blas.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/process_limits.hpp"

namespace heddle {
namespace {

constexpr const char* library_name = "libopenblas.so.0";

/// Sets an environment variable for as long as it lives, then restores what was there.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name_, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// Handle of an OpenBLAS that the process has loaded already; null when there is none. A statically
/// linked one is found by its symbols.
void* loaded_library() {
  if (void* handle = ::dlopen(library_name, RTLD_NOW | RTLD_NOLOAD)) return handle;
  if (::dlsym(RTLD_DEFAULT, "openblas_get_config") != nullptr) {
    return ::dlopen(nullptr, RTLD_NOW);
  }
  return nullptr;
}

void* open_library(const std::string& core_type) {
  // One thread from the start: otherwise the library starts a thread per core while it loads.
  const ScopedVariable threads("OPENBLAS_NUM_THREADS", "1");
  std::optional<ScopedVariable> core;
  if (!core_type.empty()) core.emplace("OPENBLAS_CORETYPE", core_type);
  if (void* handle = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* reason = ::dlerror();
  const auto limit = memory_limit();
  if (limit && reason != nullptr && std::strstr(reason, "No such file") == nullptr) {
    throw Error(ErrorCode::usage,
                fmt::format("OpenBLAS cannot be loaded: {}; {}", reason, describe(*limit)));
  }
  throw Error(ErrorCode::usage,
              fmt::format("OpenBLAS cannot be loaded: {}. Install it (on Debian: apt-get install "
                          "libopenblas0-pthread) or put {} on the library path.",
                          reason != nullptr ? reason : "no reason given", library_name));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  void* symbol = ::dlsym(library, name);
  if (symbol == nullptr) {
    throw Error(ErrorCode::usage,
                fmt::format("{} has no symbol '{}'; it is not a complete OpenBLAS. Install "
                            "libopenblas0-pthread (Debian) or one with CBLAS.",
                            library_name, name));
  }
  function = reinterpret_cast<Function>(symbol);
}

/// "0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
std::string version_of(const std::string& configuration) {
  const auto begin = configuration.find_first_of("0123456789");
  if (begin == std::string::npos) return "unknown";
  return configuration.substr(begin, configuration.find(' ', begin) - begin);
}

void choose_tile_kernels(const std::string& text, Blas& blas) {
  const MicroKernels* const widest = best_micro_kernels();
  const std::string automatic(widest != nullptr ? widest->name : "openblas");
  const auto wanted = TileKernels::parse(text.empty() ? automatic : text);
  std::string known = "openblas";
  for (const MicroKernels* kernels : micro_kernels()) {
    if (wanted && kernels->name == wanted->set) blas.micro = kernels;
    known += fmt::format(", {}", kernels->name);
  }
  if (!wanted || (blas.micro == nullptr && wanted->set != "openblas")) {
    throw Error(ErrorCode::usage,
                fmt::format("tile kernels '{}' do not run on this processor; it has: {}; heddle's "
                            "own may leave some of {} to OpenBLAS (\"avx2 but gemm\")",
                            text, known, fmt::join(TileKernels::operations, ", ")));
  }
  blas.tile_kernels = wanted->text();
  const auto own = [&](std::size_t i) { return wanted->of_library[i] ? nullptr : blas.micro; };
  blas.micro_gemm = own(0);
  blas.micro_syrk = own(1);
  blas.micro_trsm = own(2);
}

Blas load(const BlasOptions& options) {
  Blas result;
  void* library = loaded_library();
  result.preloaded = library != nullptr;
  if (library == nullptr) library = open_library(options.core_type);

  char* (*get_config)() = nullptr;
  char* (*get_core_name)() = nullptr;
  void (*set_thread_count)(int) = nullptr;
  find(library, "openblas_get_config", get_config);
  find(library, "openblas_get_corename", get_core_name);
  find(library, "openblas_set_num_threads", set_thread_count);
  result.configuration = get_config();
  result.core_name = upper_case(get_core_name());
  result.version = version_of(result.configuration);
  if (result.configuration.find("USE64BITINT") != std::string::npos) {
    throw Error(ErrorCode::usage,
                fmt::format("the OpenBLAS in this process ({}) has 64-bit integers; heddle needs "
                            "the usual one with 32-bit integers (Debian: libopenblas0-pthread)",
                            result.configuration));
  }
  find(library, "cblas_dgemm", result.dgemm);
  find(library, "cblas_dsyrk", result.dsyrk);
  find(library, "cblas_dsymm", result.dsymm);
  find(library, "cblas_dtrmm", result.dtrmm);
  find(library, "cblas_dtrsm", result.dtrsm);
  result.take_buffer = reinterpret_cast<void* (*)(int)>(::dlsym(library, "blas_memory_alloc"));
  result.give_buffer = reinterpret_cast<void (*)(void*)>(::dlsym(library, "blas_memory_free"));
  set_thread_count(1);
  choose_tile_kernels(options.tile_kernels, result);
  return result;
}

/// The loaded table and the options that it was loaded with. Written once under `mutex`;
/// `published` lets kernels read without it. It is never freed: kernels may still run while statics
/// are destroyed.
struct Loaded {
  BlasOptions options;
  Blas blas;
};
// Process-wide on purpose, as load_blas() argues.
std::mutex mutex;                               // NOLINT(*-avoid-non-const-global-variables)
std::atomic<const Loaded*> published{nullptr};  // NOLINT(*-avoid-non-const-global-variables)

void check_agreement(const Loaded& loaded, const BlasOptions& options) {
  const std::string core_type = upper_case(options.core_type);
  if (!loaded.blas.preloaded && !core_type.empty() && core_type != loaded.blas.core_name &&
      core_type != upper_case(loaded.options.core_type)) {
    throw Error(ErrorCode::usage,
                fmt::format("OpenBLAS is loaded with the kernels {} and cannot change to {}: a "
                            "process has one kernel set. Choose it with the first load_blas().",
                            loaded.blas.core_name, core_type));
  }
  if (!options.tile_kernels.empty() && options.tile_kernels != loaded.blas.tile_kernels) {
    throw Error(ErrorCode::usage,
                fmt::format("the tile kernels in use are {} and cannot change to {}: a process has "
                            "one choice. Make it with the first load_blas().",
                            loaded.blas.tile_kernels, options.tile_kernels));
  }
}

}  // namespace

std::optional<TileKernels> TileKernels::parse(const std::string& text) {
  std::istringstream words(text);
  TileKernels result;
  std::string word;
  if (!(words >> result.set)) return std::nullopt;
  if (!(words >> word)) return result;
  bool has_one = false;
  if (word != "but" || result.set == "openblas") return std::nullopt;
  while (words >> word) {
    const auto found = std::ranges::find(operations, word);
    if (found == operations.end()) return std::nullopt;
    result.of_library.at(static_cast<std::size_t>(found - operations.begin())) = has_one = true;
  }
  if (!has_one) return std::nullopt;
  return result;
}

std::string TileKernels::text() const {
  std::string text = set;
  const char* between = " but ";
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!of_library[i]) continue;
    text.append(between).append(operations[i]);
    between = " ";
  }
  return text;
}

const Blas& load_blas(const BlasOptions& options) {
  const std::lock_guard lock(mutex);
  // Relaxed: the mutex orders this load after the store of the call that loaded the library.
  const Loaded* loaded = published.load(std::memory_order_relaxed);
  if (loaded != nullptr) {
    check_agreement(*loaded, options);
    return loaded->blas;
  }
  auto fresh = std::make_unique<Loaded>(Loaded{options, load(options)});
  loaded = fresh.release();
  // Release: blas() acquires it, and so sees the whole table.
  published.store(loaded, std::memory_order_release);
  return loaded->blas;
}

const Blas& blas() {
  // Acquire: pairs with the release in load_blas().
  const Loaded* loaded = published.load(std::memory_order_acquire);
  return loaded != nullptr ? loaded->blas : load_blas({});
}

BlasPresence blas_presence() {
  // Acquire as in blas(), though only the pointer is looked at.
  if (published.load(std::memory_order_acquire) != nullptr) return BlasPresence::heddle;
  return loaded_library() != nullptr ? BlasPresence::hosting_program : BlasPresence::absent;
}

}  // namespace heddle
