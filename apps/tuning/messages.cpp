#include "apps/tuning/messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "apps/tuning/operands.hpp"
#include "base/median.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"

namespace heddle::tuning {
namespace {

constexpr std::size_t short_message_bytes = 8;
constexpr std::size_t long_bytes = std::size_t{8} << 20;
constexpr int read_ratio = 128;  ///< of long ones to short ones, for what a call costs
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

/// Two endpoints that play to and fro.
class EndpointGame {
 public:
  EndpointGame(MPI_Comm communicator, int rank)
      : communicator_(communicator),
        peer_(1 - rank),
        wire_(communicator, {.window_bytes = p2p::Endpoint::Options{}.window_bytes()}) {}

  [[nodiscard]] bool shares_memory() const { return !wire_.window_of(peer_).empty(); }
  [[nodiscard]] bool reads() const { return wire_.reads(peer_); }

  /// Median seconds from one to the other, by `path` wherever it can be taken.
  [[nodiscard]] double one_way_seconds(p2p::Path path, const Datatype& type, std::int64_t count,
                                       int exchanges) {
    p2p::Endpoint::Options options;
    options.path = path;
    p2p::Endpoint endpoint(wire_, options, [] {});
    std::vector<std::byte> memory(static_cast<std::size_t>(type.extent() * count));
    const auto transfer = [&](bool sends) {
      const p2p::Request request =
          sends ? endpoint.send_at_once({memory.data(), count, type}, peer_, tag, p2p::ChannelId{0})
                : endpoint.receive_at_once({memory.data(), count, type},
                                           {peer_, tag, p2p::ChannelId{0}});
      while (!request.done()) endpoint.progress();
      static_cast<void>(request.wait());
    };
    const bool begins = peer_ == NodeId{1};
    std::vector<double> times;
    for (int e = 0; e < exchanges; ++e) {
      const auto begin = Effort::Clock::now();
      transfer(begins);
      transfer(!begins);
      times.push_back(std::chrono::duration<double>(Effort::Clock::now() - begin).count() / 2);
    }
    // The other one may still need an answer.
    MPI_Request meeting = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibarrier(communicator_, &meeting), "MPI_Ibarrier");
    for (int is_done = 0; is_done == 0;) {
      endpoint.progress();
      check_mpi(MPI_Test(&meeting, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    }
    return median(std::move(times));
  }

 private:
  MPI_Comm communicator_;
  NodeId peer_;
  p2p::MpiWire wire_;
};

/// What endpoints do between two processes of a host.
void measure_endpoints(MPI_Comm communicator, int rank, MessageMeasurement& measured) {
  EndpointGame game(communicator, rank);
  if (!game.shares_memory()) return;
  constexpr auto long_count = static_cast<std::int64_t>(long_bytes / sizeof(double));
  const double note =
      game.one_way_seconds(p2p::Path::message, Scalar::byte, short_message_bytes, short_exchanges);
  // Columns of half of a matrix on both sides: packed by the one, unpacked by the other.
  constexpr std::int64_t rows = 512;
  const Datatype part = Datatype::vector(long_count / rows, rows, 2 * rows, Scalar::float64);
  const double packed = game.one_way_seconds(p2p::Path::shared, part, 1, long_exchanges);
  const double bytes = static_cast<double>(long_bytes);
  constexpr double least = 1e-9;
  measured.host = {std::max(least, note) * 1e6, bytes / std::max(least, packed - 2 * note) * 1e-9};
  if (!game.reads()) return;
  const double whole =
      game.one_way_seconds(p2p::Path::get, Scalar::float64, long_count, long_exchanges);
  const double some = game.one_way_seconds(p2p::Path::get, Scalar::float64, long_count / read_ratio,
                                           long_exchanges);
  const double rate = bytes * (1 - 1.0 / read_ratio) / std::max(least, whole - some);
  measured.reading = {std::max(0.1e-6, some - note - bytes / read_ratio / rate) * 1e6, rate * 1e-9};
}

}  // namespace

std::optional<MessageMeasurement> measure_messages(MPI_Comm communicator, const Effort& effort) {
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  if (size < 2) return std::nullopt;
  MPI_Comm both = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(communicator, rank < 2 ? 0 : MPI_UNDEFINED, rank, &both),
            "MPI_Comm_split");
  if (rank > 1) return std::nullopt;
  if (rank == 0) effort.tell("messages between two nodes");
  const double latency = one_way_seconds(both, rank, short_message_bytes, short_exchanges);
  const double transfer = one_way_seconds(both, rank, long_bytes, long_exchanges);
  constexpr double least = 1e-9;  // a clock may say that nothing lasted
  MessageMeasurement measured;
  measured.latency_us = std::max(least, latency) * 1e6;
  measured.rate = static_cast<double>(long_bytes) / std::max(least, transfer) * 1e-9;
  measure_endpoints(both, rank, measured);
  check_mpi(MPI_Comm_free(&both), "MPI_Comm_free");
  if (rank != 0) return std::nullopt;
  return measured;
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
