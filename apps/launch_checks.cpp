#include "apps/launch_checks.hpp"

#include <cstdint>
#include <cstdlib>
#include <fmt/core.h>
#include <future>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/error.hpp"
#include "base/process_limits.hpp"
#include "base/units.hpp"

namespace heddle {
namespace {

/// UCX's use of /dev/shm per process: 4.1 MiB and some pages.
constexpr std::uint64_t shared_bytes_of_process = 4'500'000;
/// MPI starts one or two; this process adds a watching thread.
constexpr int threads_of_start = 4;

void check_shared_memory(const Launcher& launcher) {
  // With these variables the user has chosen UCX's transports.
  if (std::getenv("UCX_TLS") != nullptr || std::getenv("UCX_POSIX_DIR") != nullptr) return;
  struct statvfs status {};
  if (::statvfs("/dev/shm", &status) != 0) return;
  const std::uint64_t all = status.f_blocks * status.f_frsize;
  const std::uint64_t free = status.f_bavail * status.f_frsize;
  const auto nodes = static_cast<std::uint64_t>(launcher.local_size);
  const std::uint64_t needed = nodes * shared_bytes_of_process;
  if (all >= needed && free >= shared_bytes_of_process) return;
  throw Error(
      ErrorCode::usage,
      fmt::format("/dev/shm has {}, {} free, but messages between the {} nodes of this host "
                  "need {}; make it larger (docker run --shm-size=1g; mount -o "
                  "remount,size=1g /dev/shm) or remove what other runs left there",
                  format_bytes(all), format_bytes(free), nodes, format_bytes(needed)));
}

/// Address space of MPI_Init, about 100 MiB, and of the C library: 128 MiB for the first allocation
/// of each thread. Without it UCX fails with an obscure error.
void check_memory() {
  constexpr std::uint64_t bytes_of_start = std::uint64_t{384} << 20U;
  const auto limit = memory_limit();
  if (!limit || limit->left() >= bytes_of_start) return;
  throw Error(ErrorCode::usage, fmt::format("not enough memory: {}, but MPI needs {} more; raise "
                                            "the limit",
                                            describe(*limit), format_bytes(bytes_of_start)));
}

/// MPI's libraries abort if the system refuses a thread.
void check_threads() {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::vector<std::thread> threads;
  const auto join = [&] {
    end.set_value();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    for (int t = 0; t < threads_of_start; ++t) {
      threads.push_back(start_thread("MPI", [ended] { ended.wait(); }));
    }
  } catch (...) {
    join();
    throw;
  }
  join();
}

/// A failure is ignored: the launcher notices by itself, later.
void tell(int connection, const std::string& message) {
  [[maybe_unused]] const ssize_t written = ::write(connection, message.data(), message.size());
}

void await_answer(int connection) {
  constexpr int wait_ms_max = 1000;
  pollfd entry{connection, POLLIN, 0};
  ::poll(&entry, 1, wait_ms_max);
}

/// A launcher that ends discards messages of its processes that it has not read.
void await_reader_of_errors() {
  constexpr int looks_max = 500;
  int unread = 0;
  for (int i = 0; i < looks_max; ++i) {
    if (::ioctl(STDERR_FILENO, FIONREAD, &unread) != 0 || unread == 0) return;
    ::poll(nullptr, 0, 1);
  }
}

}  // namespace

void check_before_mpi(const Launcher& launcher) {
  if (!launcher.launched) return;
  check_shared_memory(launcher);
  check_memory();
  check_threads();
}

void abort_launch(int status, bool mpi_has_begun) noexcept {
  const char* text = std::getenv("PMI_FD");
  if (text == nullptr) return;
  const int connection = static_cast<int>(std::strtol(text, nullptr, 10));
  await_reader_of_errors();
  if (!mpi_has_begun) {
    tell(connection, "cmd=init pmi_version=1 pmi_subversion=1\n");
    await_answer(connection);  // waits for the answer, which needs this process as its receiver
  }
  tell(connection, fmt::format("cmd=abort exitcode={}\n", status));
  await_answer(connection);  // does not return: the launcher's signal comes first
}

}  // namespace heddle
