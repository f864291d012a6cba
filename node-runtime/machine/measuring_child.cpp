#include "node-runtime/machine/measuring_child.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fmt/core.h>
#include <poll.h>
#include <span>
#include <string_view>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/error.hpp"
#include "kernels/cholesky.hpp"
#include "node-runtime/topology/cpu.hpp"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

template <std::size_t Size>
void put_text(std::array<char, Size>& to, std::string_view text) {
  const std::size_t length = std::min(text.size(), Size - 1);
  std::copy_n(text.data(), length, to.data());
  to.at(length) = '\0';
}

/// Sends one message; false when the other end has gone.
template <class T>
bool send_message(int socket, const T& message) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, &message, sizeof(T), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof(T));
}

/// Receives one message; false at the end of the conversation, or after `limit_ms` (-1: never).
template <class T>
bool receive_message(int socket, T& message, std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{socket, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t received = ::recv(socket, &message, sizeof(T), 0);
    if (received < 0 && errno == EINTR) continue;
    return received == static_cast<ssize_t>(sizeof(T));
  }
}

/// Tiles that the kernels run on: a well-conditioned symmetric one, its factor, and two of
/// harmless values.
class Workload {
 public:
  explicit Workload(std::int64_t tile) : n_(tile) {
    const auto size = static_cast<std::size_t>(n_ * n_);
    for (auto* values : {&symmetric_, &factor_, &left_, &right_, &result_}) values->resize(size);
    for (std::int64_t j = 0; j < n_; ++j) {
      for (std::int64_t i = 0; i < n_; ++i) {
        const auto at = static_cast<std::size_t>(i + j * n_);
        const double close = 1 / (1 + static_cast<double>(std::abs(i - j)));
        symmetric_[at] = i == j ? static_cast<double>(n_) : close;
        left_[at] = 0.5 - static_cast<double>((i * 7 + j * 13) % 31) / 31;
        right_[at] = 0.5 - static_cast<double>((i * 11 + j * 5) % 29) / 29;
      }
    }
    factor_ = symmetric_;
    static_cast<void>(kernel::potrf.host({std::span(&(tiles_[0] = view(factor_)), 1), piece_}));
  }

  KernelSeconds run() {
    KernelSeconds seconds;
    result_ = symmetric_;
    seconds.potrf = time(kernel::potrf, piece_, {view(result_)});
    result_ = left_;
    seconds.trsm = time(kernel::trsm, piece_, {view(result_), view(factor_)});
    seconds.syrk = time(kernel::syrk, piece_, {view(result_), view(left_)});
    seconds.gemm = time(kernel::gsmm, update_, {view(result_), view(left_), view(right_)});
    return seconds;
  }

 private:
  [[nodiscard]] TileView view(std::vector<double>& values) const {
    return {values.data(), n_, n_, n_};
  }

  double time(const Kernel& kernel, const KernelParameters& parameters,
              std::initializer_list<TileView> tiles) {
    std::ranges::copy(tiles, tiles_.begin());
    const Clock::time_point begin = Clock::now();
    static_cast<void>(kernel.host({std::span(tiles_).first(tiles.size()), parameters}));
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  std::int64_t n_;
  KernelParameters piece_{kernel::PieceParameters{0}};
  KernelParameters update_{kernel::UpdateParameters{0}};
  std::array<TileView, 3> tiles_;
  std::vector<double> symmetric_, factor_, left_, right_, result_;
};

KernelSeconds best_of_two(Workload& workload) {
  const KernelSeconds a = workload.run();
  const KernelSeconds b = workload.run();
  return {std::min(a.gemm, b.gemm), std::min(a.syrk, b.syrk), std::min(a.trsm, b.trsm),
          std::min(a.potrf, b.potrf)};
}

MeasuringChild::Hello load_and_describe(const BlasOptions& options) {
  MeasuringChild::Hello hello;
  try {
    const Blas& loaded = load_blas(options);
    put_text(hello.version, loaded.version);
    put_text(hello.core_name, loaded.core_name);
    put_text(hello.configuration, loaded.configuration);
    hello.ok = true;
  } catch (const std::exception& error) {
    put_text(hello.error, error.what());
  }
  return hello;
}

/// The child's whole life. Returns when the parent closes its end.
void serve(int socket, const BlasOptions& options, std::int64_t tile) {
  // The library's own choice is what it takes without advice from the environment.
  ::unsetenv("OPENBLAS_CORETYPE");
  const MeasuringChild::Hello hello = load_and_describe(options);
  if (!send_message(socket, hello) || !hello.ok || tile == 0) return;
  Workload workload(tile);
  // An hour: the parent's death ends this process in any case.
  constexpr std::chrono::hours forever{1};
  for (std::int32_t hardware_thread = 0; receive_message(socket, hardware_thread, forever);) {
    pin_current_thread(std::array{CpuCore{{hardware_thread}}});
    if (!send_message(socket, best_of_two(workload))) return;
  }
}

}  // namespace

MeasuringChild::MeasuringChild(const BlasOptions& options, std::int64_t tile) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(
        ErrorCode::internal,
        fmt::format("no socket for a process that measures kernels: {}", std::strerror(errno)));
  }
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) {
    const int reason = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw Error(ErrorCode::internal,
                fmt::format("no process to measure kernels in: {}", std::strerror(reason)));
  }
  if (process_ == 0) {
    // Later siblings inherit the parent's ends, so the end of the socket alone would not do.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::close(ends[0]);
    try {
      serve(ends[1], options, tile);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

MeasuringChild::~MeasuringChild() {
  ::close(socket_);
  // It holds nothing worth a farewell, and may hang; it is ours until it has been waited for.
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool MeasuringChild::greet() {
  if (!greeted_) {
    greeted_ = true;
    if (!receive_message(socket_, hello_, patience)) hello_.ok = false;
  }
  return hello_.ok;
}

void MeasuringChild::greet_or_throw() {
  if (greet()) return;
  if (hello_.error.front() != '\0') throw Error(ErrorCode::usage, hello_.error.data());
  throw Error(ErrorCode::internal,
              fmt::format("the process that loads OpenBLAS to measure it died or was silent for {} "
                          "s",
                          patience.count()));
}

std::optional<KernelSeconds> MeasuringChild::measure(std::int32_t hardware_thread) {
  KernelSeconds seconds;
  if (!send_message(socket_, hardware_thread) || !receive_message(socket_, seconds, patience)) {
    return std::nullopt;
  }
  return seconds;
}

}  // namespace heddle
