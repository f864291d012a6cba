/// How long do messages between two nodes take through heddle's endpoints, beside plain MPI? Host
/// memory to host memory: contiguous of all sizes, and parts of matrices, with MPI's derived types
/// as the reference. To be started on two nodes: mpiexec.mpich -n 2 p2p_host. Both are measured in
/// turns, and what arrives is validated.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fmt/core.h>
#include <mpi.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/median.hpp"
#include "bench/host_timing.hpp"
#include "node-runtime/transport/p2p/endpoint.hpp"
#include "node-runtime/transport/p2p/host_pages.hpp"
#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"

namespace heddle {
namespace {

using p2p::ChannelId;
using p2p::Endpoint;
using p2p::MpiWire;

/// What goes to and fro, as heddle and as MPI describe it.
struct Case {
  std::string name;
  Datatype type;
  MPI_Datatype reference;
  std::int64_t elements;  ///< doubles of the memory that it lies in
};

Case contiguous(std::int64_t bytes) {
  MPI_Datatype reference = MPI_DATATYPE_NULL;
  MPI_Type_contiguous_c(bytes / 8, MPI_DOUBLE, &reference);
  return {"contiguous", Datatype::contiguous(bytes / 8, Scalar::float64), committed(reference),
          bytes / 8};
}

Case sub_matrix(std::int64_t n) {
  const std::int64_t leading = n + n / 8;
  MPI_Datatype reference = MPI_DATATYPE_NULL;
  MPI_Type_vector_c(n, n, leading, MPI_DOUBLE, &reference);
  return {fmt::format("submatrix {}", n), Datatype::vector(n, n, leading, Scalar::float64),
          committed(reference), n * leading};
}

Case triangle(std::int64_t n) {
  std::vector<MPI_Count> lengths;
  std::vector<MPI_Count> displacements;
  for (std::int64_t j = 0; j < n; ++j) {
    lengths.push_back(n - j);
    displacements.push_back(j * n + j);
  }
  MPI_Datatype reference = MPI_DATATYPE_NULL;
  MPI_Type_indexed_c(n, lengths.data(), displacements.data(), MPI_DOUBLE, &reference);
  return {
      fmt::format("triangle {}", n),
      Datatype::triangle({Datatype::TriangleShape::Part::lower, true, n, n, n}, Scalar::float64),
      committed(reference), n * n};
}

class PingPong {
 public:
  /// The memory begins `offset` bytes behind a page's begin.
  PingPong(MpiWire& wire, Endpoint& endpoint, const Case& c, std::size_t offset)
      : rank_(wire.node().value()),
        endpoint_(endpoint),
        case_(c),
        pages_(static_cast<std::size_t>(c.elements) * sizeof(double) + offset),
        memory_(reinterpret_cast<double*>(pages_.span().data() + offset),
                static_cast<std::size_t>(c.elements)),
        outgoing_{memory_.data(), 1, c.type},
        incoming_{memory_.data(), 1, c.type} {}

  /// Half of the time that it takes to and fro.
  double heddle(int rounds) {
    return timed(rounds, [this](bool sends) {
      const NodeId peer{1 - rank_};
      const p2p::Request request =
          sends ? endpoint_.send_at_once(outgoing_, peer, 0, ChannelId{0})
                : endpoint_.receive_at_once(incoming_, {peer, 0, ChannelId{0}});
      while (!request.done()) endpoint_.progress();
      request.wait();
    });
  }
  double mpi(int rounds) {
    return timed(rounds, [this](bool sends) {
      if (sends) {
        MPI_Send(memory_.data(), 1, case_.reference, 1 - rank_, 0, MPI_COMM_WORLD);
      } else {
        MPI_Recv(memory_.data(), 1, case_.reference, 1 - rank_, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      }
    });
  }

  /// Each way brings every byte, and touches no other.
  [[nodiscard]] bool is_right() {
    bool right = true;
    for (const bool by_heddle : {true, false}) {
      for (std::size_t i = 0; i < memory_.size(); ++i) {
        memory_[i] = rank_ == 0 ? static_cast<double>(i + 1) : -1.0;
      }
      by_heddle ? heddle(1) : mpi(1);
      std::int64_t came = 0;
      for (std::size_t i = 0; i < memory_.size(); ++i) {
        const bool is_same = memory_[i] == static_cast<double>(i + 1);
        came += is_same ? 1 : 0;
        right = right && (is_same || memory_[i] == -1.0);
      }
      right = right && (rank_ == 0 || 8 * came == case_.type.size());
    }
    return right;
  }

 private:
  template <class Transfer>
  double timed(int rounds, const Transfer& transfer) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now();
    for (int round = 0; round < rounds; ++round) {
      transfer(rank_ == 0);
      transfer(rank_ == 1);
    }
    return (now() - begin) / rounds / 2;
  }

  int rank_;
  Endpoint& endpoint_;
  const Case& case_;
  p2p::HostPages pages_;
  std::span<double> memory_;
  p2p::Outgoing outgoing_;  ///< all of it
  p2p::Incoming incoming_;
};

struct Options {
  int repetitions = 15;
  double seconds_min = 0.01;  ///< of one timing
  std::int64_t bytes_max = std::int64_t{64} << 20U;
  std::size_t offset = 0;  ///< of the memory, behind a page's begin; numbers' alignment
  std::string only;        ///< cases whose names begin so
  std::string path;        ///< taken wherever it can be
  bool explains = false;
};

/// A line for each case; false if something did not arrive as it should.
bool measure(MpiWire& wire, Endpoint& endpoint, const Case& c, const Options& options) {
  PingPong game(wire, endpoint, c, options.offset);
  bool right = game.is_right();
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_CXX_BOOL, MPI_LAND, MPI_COMM_WORLD);
  double each = std::max(game.mpi(3), 1e-7);
  MPI_Bcast(&each, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  const int rounds = std::max(1, static_cast<int>(options.seconds_min / each / 2));
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> ratios;
  for (int r = 0; r < options.repetitions; ++r) {
    ours.push_back(game.heddle(rounds));
    theirs.push_back(game.mpi(rounds));
    ratios.push_back(theirs.back() / ours.back());
  }
  if (wire.node().value() == 0) {
    const double bytes = static_cast<double>(c.type.size());
    const double mine = median(ours);
    fmt::print("{:<16}{:>12}{:>12.2f}{:>12.2f}{:>10.2f}{:>10.2f}{:>9.3f}  {}\n", c.name,
               c.type.size(), mine * 1e6, median(theirs) * 1e6, bytes / mine * 1e-9,
               bytes / median(theirs) * 1e-9, median(ratios), right ? "" : "WRONG");
    std::fflush(stdout);
  }
  return right;
}

int run(const Options& options) {
  Endpoint::Options endpoint_options;
  if (!options.path.empty()) endpoint_options.path = p2p::path_named(options.path);
  if (options.explains) {
    endpoint_options.report = [](const p2p::MessageReport& report) {
      fmt::print("{}\n", p2p::explain(report));
    };
  }
  MpiWire wire(MPI_COMM_WORLD, {endpoint_options.window_bytes(), true});
  if (wire.nodes() != 2) {
    std::fprintf(stderr, "p2p_host: %d nodes; start it as mpiexec.mpich -n 2 p2p_host\n",
                 wire.nodes());
    return 2;
  }
  Endpoint endpoint(wire, endpoint_options, [] {});
  if (wire.node().value() == 0) {
    fmt::print("One way, medians of {}; the ratio is MPI's time over heddle's, of each turn\n\n",
               options.repetitions);
    fmt::print("{:<16}{:>12}{:>12}{:>12}{:>10}{:>10}{:>9}\n", "what", "bytes", "heddle, us",
               "MPI, us", "GB/s", "MPI", "ratio");
  }
  std::vector<Case> cases;
  for (std::int64_t bytes = 8; bytes <= options.bytes_max; bytes *= bytes < 1024 ? 8 : 4) {
    cases.push_back(contiguous(bytes));
  }
  for (const std::int64_t n : {64, 256, 1000, 2000}) {
    if (8 * n * n > options.bytes_max) continue;
    cases.push_back(sub_matrix(n));
    cases.push_back(triangle(n));
  }
  bool right = true;
  for (Case& c : cases) {
    if (!c.name.starts_with(options.only)) continue;
    right = measure(wire, endpoint, c, options) && right;
    MPI_Type_free(&c.reference);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace heddle

int main(int count, char** arguments) {
  int provided = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_SERIALIZED, &provided);
  heddle::Options options;
  CLI::App app("messages between two nodes, beside plain MPI");
  app.add_option("--repetitions", options.repetitions, "timings of each")
      ->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds_min, "least time of one timing");
  app.add_option("--bytes-max", options.bytes_max, "largest message");
  app.add_option("--offset", options.offset, "bytes from a page's begin to the memory")
      ->check(CLI::TypeValidator<std::size_t>() & CLI::Validator(
                                                      [](const std::string& text) {
                                                        return std::stoull(text) % 8 == 0
                                                                   ? ""
                                                                   : "must be a multiple of 8";
                                                      },
                                                      "MULTIPLE OF 8"));
  app.add_option("--only", options.only, "cases whose names begin so");
  app.add_option("--path", options.path, "path that is taken wherever it can be");
  app.add_flag("--explain", options.explains, "says how each message comes, and why so");
  int status = 1;
  try {
    app.parse(count, arguments);
    status = heddle::run(options);
  } catch (const CLI::ParseError& error) {
    status = app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "p2p_host: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
