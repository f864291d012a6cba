#include "apps/tuning/messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "apps/tuning/operands.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle::tuning {
namespace {

constexpr std::size_t short_bytes = 8;
constexpr std::size_t long_bytes = std::size_t{8} << 20;
constexpr int short_exchanges = 500;
constexpr int long_exchanges = 20;
constexpr int tag = 1;
constexpr std::chrono::milliseconds quiet_interval{20};

/// Median seconds from one process to the other, half of there and back.
double one_way_seconds(MPI_Comm communicator, int rank, std::size_t bytes, int exchanges) {
  std::vector<std::byte> buffer(bytes);
  const int count = static_cast<int>(bytes);
  const auto send = [&] {
    check_mpi(MPI_Send(buffer.data(), count, MPI_BYTE, 1 - rank, tag, communicator),
              "measuring messages");
  };
  const auto receive = [&] {
    check_mpi(
        MPI_Recv(buffer.data(), count, MPI_BYTE, 1 - rank, tag, communicator, MPI_STATUS_IGNORE),
        "measuring messages");
  };
  std::vector<double> times;
  for (int e = 0; e < exchanges; ++e) {
    if (rank == 1) {
      receive();
      send();
      continue;
    }
    const auto begin = Effort::Clock::now();
    send();
    receive();
    times.push_back(std::chrono::duration<double>(Effort::Clock::now() - begin).count() / 2);
  }
  return median(std::move(times));
}

}  // namespace

std::optional<MessageMeasurement> measure_messages(MPI_Comm communicator, const Effort& effort) {
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  if (size < 2 || rank > 1) return std::nullopt;
  if (rank == 0) effort.tell("messages between two nodes");
  const double latency = one_way_seconds(communicator, rank, short_bytes, short_exchanges);
  const double transfer = one_way_seconds(communicator, rank, long_bytes, long_exchanges);
  if (rank != 0) return std::nullopt;
  constexpr double least = 1e-9;  // a clock may say that nothing lasted
  return MessageMeasurement{std::max(least, latency) * 1e6,
                            static_cast<double>(long_bytes) / std::max(least, transfer) * 1e-9};
}

void wait_quietly(MPI_Comm communicator) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(communicator, &request), "MPI_Ibarrier");
  int done = 0;
  while (true) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    std::this_thread::sleep_for(quiet_interval);
  }
}

}  // namespace heddle::tuning
