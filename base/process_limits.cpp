#include "base/process_limits.hpp"

#include <array>
#include <fmt/core.h>
#include <fstream>
#include <new>
#include <sys/resource.h>

#include "base/units.hpp"

namespace heddle {
namespace {

std::optional<std::uint64_t> limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::uint64_t>(limit.rlim_cur);
}

/// Bytes of a line "VmSize:     1234 kB" of /proc/self/status; 0 if absent.
std::uint64_t used_bytes(std::string_view key) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word != key) continue;
    std::uint64_t kibibytes = 0;
    file >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

std::string with_limit(std::string text) {
  if (const auto limit = memory_limit()) text += fmt::format("; {}", describe(*limit));
  return text;
}

}  // namespace

std::optional<MemoryLimit> memory_limit() {
  struct Kind {
    decltype(RLIMIT_AS) resource;
    const char* name;
    const char* used;
  };
  constexpr std::array kinds{Kind{RLIMIT_AS, "address space (ulimit -v)", "VmSize:"},
                             Kind{RLIMIT_DATA, "private memory (ulimit -d)", "VmData:"}};
  std::optional<MemoryLimit> tightest;
  for (const Kind& kind : kinds) {
    const auto bytes = limit_of(kind.resource);
    if (!bytes) continue;
    const MemoryLimit limit{kind.name, *bytes, used_bytes(kind.used)};
    if (!tightest || limit.left() < tightest->left()) tightest = limit;
  }
  return tightest;
}

std::string describe(const MemoryLimit& limit) {
  return fmt::format("the process's {} is limited to {}, and {} are used", limit.name,
                     format_bytes(limit.bytes), format_bytes(limit.used));
}

Error memory_refused(std::string_view purpose, std::uint64_t bytes) {
  return {ErrorCode::usage, with_limit(fmt::format("the system refused {} of memory for {}",
                                                   format_bytes(bytes), purpose))};
}

Error out_of_memory() {
  return {ErrorCode::usage, with_limit("the system refused memory")};
}

Error thread_refused(std::string_view name, std::string_view reason) {
  std::string text = fmt::format("no thread or process for {}: {}", name, reason);
  if (const auto limit = limit_of(RLIMIT_NPROC)) {
    text += fmt::format("; this user may have {} processes and threads (ulimit -u)", *limit);
  }
  text += "; a container may have a limit of its own (docker run --pids-limit)";
  return {ErrorCode::usage, with_limit(std::move(text))};
}

Error as_error(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) return out_of_memory();
  return {ErrorCode::internal, exception.what()};
}

}  // namespace heddle
