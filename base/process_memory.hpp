#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/types.h>

namespace heddle {

/// Reads memory of another process (process_vm_readv). May return fewer bytes than asked; -1 and
/// errno where it is not permitted.
[[nodiscard]] ssize_t read_process(pid_t process, std::uint64_t address, std::span<std::byte> into);

}  // namespace heddle
