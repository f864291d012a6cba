#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"

/// Resource limits of this process (setrlimit), and the errors for refused memory and threads.
namespace heddle {

/// A memory limit of this process and its present use.
struct MemoryLimit {
  const char* name = "";  ///< "address space (ulimit -v)"
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;

  [[nodiscard]] std::uint64_t left() const { return bytes > used ? bytes - used : 0; }
};

/// The tighter limit of address space (RLIMIT_AS) and private memory (RLIMIT_DATA); nothing if
/// unlimited.
[[nodiscard]] std::optional<MemoryLimit> memory_limit();

/// "the address space (ulimit -v) is limited to 390.63 MiB, of which 148.20 MiB are used"
[[nodiscard]] std::string describe(const MemoryLimit& limit);

/// Error(usage): the system refused `bytes` for `purpose`; names the limit that may be the cause.
[[nodiscard]] Error memory_refused(std::string_view purpose, std::uint64_t bytes);
/// The same for an unknown amount.
[[nodiscard]] Error out_of_memory();

/// Error(usage): thread or process `name` could not be created because of `reason`; names the
/// limits that may be the cause.
[[nodiscard]] Error thread_refused(std::string_view name, std::string_view reason);

/// Converts an exception for other threads and nodes: an Error as it is, std::bad_alloc to
/// out_of_memory(), anything else to Error(internal).
[[nodiscard]] Error as_error(const std::exception& exception);

/// Starts a thread that runs `work`. Throws Error(usage) with `name` if the system refuses.
template <class Work>
[[nodiscard]] std::thread start_thread(std::string_view name, Work work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw thread_refused(name, error.code().message());
  }
}

}  // namespace heddle
