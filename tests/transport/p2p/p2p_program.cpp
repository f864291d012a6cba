// Some nodes send each other messages of all sizes and shapes over MPI, from and to host memory and
// devices. Ends with 0 when all have arrived as they should; --help tells the options.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fmt/core.h>
#include <memory>
#include <mpi.h>
#include <optional>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include "node-runtime/device/devices.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"
#include "node-runtime/transport/p2p/note.hpp"
#include "tests/transport/p2p/device_place.hpp"
#include "tests/transport/p2p/random_messages.hpp"

namespace heddle::p2p {
namespace {

struct ProgramOptions {
  std::uint64_t seed = 1;
  std::uint64_t count = 100;
  std::uint64_t scalars = 1000;
  std::string devices = "none";              ///< or emulated, cuda
  std::optional<std::int32_t> device_count;  ///< of each node
  bool on_devices = false;                   ///< all memory, none on the host
  std::string path;
  bool apart = false;      ///< nothing is shared but MPI
  int refusing_node = -1;  ///< its (emulated) devices map nothing
  int leaving_node = -1;   ///< ends in the middle of things
  bool tells = false;
  std::uint64_t late_notes = 0;  ///< instead of messages; node 1 reads when all were sent
};

/// Drives the endpoint until all nodes have come here.
void meet(Endpoint& endpoint) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int is_done = 0; is_done == 0;) {
    endpoint.progress();
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
  }
}

Endpoint::Options endpoint_options(const ProgramOptions& options) {
  Endpoint::Options result;
  result.eager_bytes_max = 1000;
  result.eager_memory_bytes = 4000;
  result.sizes.piece_bytes = 10'000;
  result.sizes.ring_piece_bytes = 40'000;
  if (!options.path.empty()) result.path = path_named(options.path);
  if (options.tells) {
    result.report = [](const MessageReport& report) {
      fmt::print("{} bytes from node {} to node {}: {}\n", report.bytes, report.source.value(),
                 report.receiver.value(), name_of(report.path));
    };
  }
  return result;
}

std::vector<std::unique_ptr<Device>> make_devices(const ProgramOptions& options, int node,
                                                  int nodes) {
  if (options.devices == "none") return {};
  DeviceOptions wanted;
  wanted.backend = options.devices == "cuda" ? DeviceBackend::cuda : DeviceBackend::emulated;
  wanted.count = options.device_count;
  wanted.emulated.memory_bytes = std::uint64_t{64} << 20U;
  wanted.emulated.faults.refuse_mappings = node == options.refusing_node;
  wanted.cuda.memory_bytes = std::uint64_t{256} << 20U;
  wanted.cuda.nodes = nodes;
  wanted.cuda.node = node;
  return std::move(heddle::make_devices(wanted).devices);
}

/// Where the test leaves a node alone, its peers have to hear of it in bounded time.
int end_alone(Endpoint& endpoint, const std::vector<Request>& requests) {
  int failed = 0;
  for (const Request& request : requests) {
    try {
      while (!request.done()) endpoint.progress();
      static_cast<void>(request.wait());
    } catch (const Error& error) {
      failed += std::string(error.what()).find("is lost") != std::string::npos ? 1 : 0;
    }
  }
  std::printf("%d requests failed with the lost node\n", failed);
  std::fflush(stdout);
  ::_exit(failed > 0 ? 0 : 1);  // MPI cannot be ended any more
}

/// Notes of node 0 to node 1, which does not read until all are sent. Node 0 says whether it finds
/// node 1 behind then, and whether notes wait.
int send_late_notes(const ProgramOptions& options) {
  constexpr std::size_t note_bytes = 200;
  MpiWire wire(MPI_COMM_WORLD, {std::size_t{1} << 16U, !options.apart});
  Wire::Events events;
  if (wire.node() == NodeId{0}) {
    for (std::uint64_t i = 0; i < options.late_notes; ++i) {
      std::memcpy(wire.begin_note(NodeId{1}, note_bytes).data(), &i, sizeof i);
      wire.send_note();
    }
    std::printf("behind: %d, unsent: %d\n", wire.is_behind(NodeId{1}) ? 1 : 0,
                wire.has_unsent_notes() ? 1 : 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::uint64_t count = 0;
  int wrong = 0;
  const bool reads = wire.node() == NodeId{1};
  while (reads ? count < options.late_notes : wire.has_unsent_notes()) {
    events.clear();
    wire.poll(events);
    for (const Wire::Note& note : events.notes) {
      if (read<std::uint64_t>(note.bytes) != count++) ++wrong;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return wrong == 0 && !wire.is_behind(NodeId{1}) ? 0 : 1;
}

int run(const ProgramOptions& options) {
  if (options.late_notes > 0) return send_late_notes(options);
  const Endpoint::Options wanted = endpoint_options(options);
  MpiWire wire(MPI_COMM_WORLD, {wanted.window_bytes(), !options.apart});
  const int node = wire.node().value();
  const auto devices = make_devices(options, node, wire.nodes());
  std::vector<Device*> own;
  own.reserve(devices.size());
  for (const auto& device : devices) own.push_back(device.get());
  std::mt19937_64 random(options.seed);
  std::vector<RandomMessage> messages;
  messages.reserve(options.count);
  std::vector<std::unique_ptr<PlaceOnDevice>> sources;
  std::vector<std::unique_ptr<PlaceOnDevice>> targets;
  const auto place = [&](Place& host, int at) {
    Where where;
    const std::uint64_t draw = random();
    if (at == node && !own.empty()) {
      Device* const device = own[draw % own.size()];
      const std::uint64_t kind = options.on_devices ? 0 : draw % 4;
      if (kind < 2) where.device = device;
      if (kind == 2) where.locked_by = device;
    }
    return std::make_unique<PlaceOnDevice>(host, where);
  };
  for (std::uint64_t i = 0; i < options.count; ++i) {
    RandomMessage& m = messages.emplace_back(wire.nodes(), options.scalars, random);
    sources.push_back(place(m.source, m.from));
    targets.push_back(place(m.target, m.to));
  }
  int wrong = 0;
  {
    Endpoint endpoint(
        wire, wanted, [] {}, own);
    std::vector<Request> requests;
    // Sends and receives each in order; which of both goes first is each node's own affair.
    std::mt19937_64 choice(options.seed * 31 + static_cast<std::uint64_t>(node));
    std::size_t sent = 0;
    std::size_t received = 0;
    const ChannelId channel{0};
    while (sent < messages.size() || received < messages.size()) {
      const bool sends =
          received == messages.size() || (sent < messages.size() && choice() % 2 == 0);
      const std::size_t i = sends ? sent++ : received++;
      RandomMessage& m = messages[i];
      if (sends && m.from == node) {
        requests.push_back(endpoint.send({sources[i]->address(), m.source.count, m.source.type},
                                         NodeId{m.to}, m.tag, channel));
      }
      if (!sends && m.to == node) {
        requests.push_back(endpoint.receive({targets[i]->address(), m.target.count, m.target.type},
                                            {NodeId{m.from}, m.tag, channel}));
      }
      endpoint.progress();
      const bool leaves = node == options.leaving_node && sent + received > messages.size() / 2;
      if (leaves) ::_exit(0);
    }
    if (options.leaving_node >= 0) end_alone(endpoint, requests);
    while (!std::ranges::all_of(requests, [](const Request& r) { return r.done(); })) {
      endpoint.progress();
    }
    for (const Request& request : requests) {
      try {
        request.wait();
      } catch (const Error& error) {
        std::fprintf(stderr, "node %d: %s\n", node, error.what());
        ++wrong;
      }
    }
    meet(endpoint);
    while (!endpoint.is_idle()) endpoint.progress();
    meet(endpoint);
    endpoint.close();
    while (!endpoint.is_closed()) endpoint.progress();
    meet(endpoint);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].to == node && targets[i]->content() != messages[i].expected) ++wrong;
  }
  if (wrong > 0) std::fprintf(stderr, "node %d: %d wrong messages\n", node, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace heddle::p2p

int main(int count, char** arguments) {
  int provided = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_SERIALIZED, &provided);
  int status = 1;
  try {
    heddle::p2p::ProgramOptions options;
    CLI::App app("Messages between nodes, validated");
    app.add_option("--seed", options.seed);
    app.add_option("--count", options.count, "messages");
    app.add_option("--scalars", options.scalars, "longest message");
    app.add_option("--devices", options.devices, "none, emulated, cuda");
    app.add_option("--device-count", options.device_count, "of each node");
    app.add_flag("--on-devices", options.on_devices, "all memory, none on the host");
    app.add_option("--path", options.path, "taken wherever it can be");
    app.add_flag("--apart", options.apart, "nothing is shared but MPI");
    app.add_option("--refusing-node", options.refusing_node, "whose devices map nothing");
    app.add_option("--leaving-node", options.leaving_node, "which ends too early");
    app.add_option("--late-notes", options.late_notes, "which node 1 reads when all were sent");
    app.add_flag("--tell", options.tells, "says how each message comes");
    try {
      app.parse(count, arguments);
      status = heddle::p2p::run(options);
    } catch (const CLI::ParseError& error) {
      status = app.exit(error) == 0 ? 0 : 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "p2p_program: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
