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

/// What the system lets this process have: limits that batch systems, shells and administrators set
/// (setrlimit), and the errors for what is refused.
namespace heddle {

/// A limit of this process's memory and how far it is used.
struct MemoryLimit {
  const char* name = "";  ///< "address space (ulimit -v)"
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;

  [[nodiscard]] std::uint64_t left() const { return bytes > used ? bytes - used : 0; }
};

/// The limit that leaves least: of the address space (RLIMIT_AS) or of private memory
/// (RLIMIT_DATA); nothing without limits.
[[nodiscard]] std::optional<MemoryLimit> memory_limit();

/// "the address space (ulimit -v) is limited to 390.63 MiB, of which 148.20 MiB are used"
[[nodiscard]] std::string describe(const MemoryLimit& limit);

/// Error(usage): the system refused `bytes` for `purpose`; with the limit that may be why.
[[nodiscard]] Error memory_refused(std::string_view purpose, std::uint64_t bytes);
/// Error(usage): the same where it is not known how much was asked for.
[[nodiscard]] Error out_of_memory();

/// Error(usage): there is no thread or process `name`, for `reason`; with the limits that may be
/// why.
[[nodiscard]] Error thread_refused(std::string_view name, std::string_view reason);

/// What any exception leaves behind, as one that other threads and nodes can be told: an Error as
/// it is, refused memory as out_of_memory(), anything else as Error(internal).
[[nodiscard]] Error as_error(const std::exception& exception);

/// A thread that runs `work`. Throws Error(usage) that names it where the system refuses one.
template <class Work>
[[nodiscard]] std::thread start_thread(std::string_view name, Work work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw thread_refused(name, error.code().message());
  }
}

}  // namespace heddle
