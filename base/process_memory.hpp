#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/types.h>

namespace heddle {

/// Reads the memory of another process at `address` there, as many bytes as the system gives at
/// once; -1 with errno where it does not let this one.
[[nodiscard]] ssize_t read_process(pid_t process, std::uint64_t address, std::span<std::byte> into);

}  // namespace heddle
