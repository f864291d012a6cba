#include "base/process_memory.hpp"

#include <sys/uio.h>

namespace heddle {

ssize_t read_process(pid_t process, std::uint64_t address, std::span<std::byte> into) {
  const iovec local{into.data(), into.size()};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the other process
  const iovec remote{reinterpret_cast<void*>(address), into.size()};
  return ::process_vm_readv(process, &local, 1, &remote, 1, 0);
}

}  // namespace heddle
