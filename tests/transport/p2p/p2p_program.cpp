// Some nodes send each other messages of all sizes and shapes over MPI: p2p_program SEED COUNT
// SCALARS. Ends with 0 when all have arrived as they should.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mpi.h>
#include <random>
#include <vector>

#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"
#include "tests/transport/p2p/random_messages.hpp"

namespace heddle::p2p {
namespace {

/// Drives the endpoint until all nodes have come here.
void meet(Endpoint& endpoint) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int is_done = 0; is_done == 0;) {
    endpoint.progress();
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
  }
}

int run(std::uint64_t seed, std::uint64_t count, std::uint64_t scalars) {
  MpiWire wire(MPI_COMM_WORLD);
  std::mt19937_64 random(seed);
  std::vector<RandomMessage> messages;
  messages.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) messages.emplace_back(wire.nodes(), scalars, random);
  int wrong = 0;
  {
    Endpoint endpoint(wire, {.eager_bytes_max = 1000, .eager_slots = 4, .piece_bytes = 10'000},
                      [] {});
    std::vector<Request> requests;
    // Sends and receives each in order; which of both goes first is each node's own affair.
    std::mt19937_64 own(seed * 31 + static_cast<std::uint64_t>(wire.node().value()));
    std::size_t sent = 0;
    std::size_t received = 0;
    const ChannelId channel{0};
    while (sent < messages.size() || received < messages.size()) {
      const bool sends = received == messages.size() || (sent < messages.size() && own() % 2 == 0);
      RandomMessage& m = messages[sends ? sent++ : received++];
      if (sends && m.from == wire.node().value()) {
        requests.push_back(endpoint.send({m.source.address(), m.source.count, m.source.type},
                                         NodeId{m.to}, m.tag, channel));
      }
      if (!sends && m.to == wire.node().value()) {
        requests.push_back(endpoint.receive({m.target.address(), m.target.count, m.target.type},
                                            {NodeId{m.from}, m.tag, channel}));
      }
      endpoint.progress();
    }
    while (!std::ranges::all_of(requests, [](const Request& r) { return r.done(); })) {
      endpoint.progress();
    }
    for (const Request& request : requests) request.wait();
    meet(endpoint);
    while (!endpoint.is_idle()) endpoint.progress();
    meet(endpoint);
  }
  for (const RandomMessage& m : messages) {
    if (m.to == wire.node().value() && m.target.bytes != m.expected) ++wrong;
  }
  if (wrong > 0) std::fprintf(stderr, "node %d: %d wrong messages\n", wire.node().value(), wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace heddle::p2p

int main(int count, char** arguments) {
  if (count != 4) return 2;
  int provided = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_SERIALIZED, &provided);
  int status = 1;
  try {
    status = heddle::p2p::run(std::strtoull(arguments[1], nullptr, 10),
                              std::strtoull(arguments[2], nullptr, 10),
                              std::strtoull(arguments[3], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "p2p_program: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
