#include "apps/bench_p2p.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/command.hpp"
#include "apps/file_uses.hpp"
#include "apps/p2p_game.hpp"
#include "apps/report.hpp"
#include "base/median.hpp"
#include "base/units.hpp"
#include "config/config.hpp"
#include "node-runtime/topology/surroundings.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/transport/p2p/mpi/mpi_wire.hpp"
#include "node-runtime/wanted_devices.hpp"

namespace heddle {
namespace {

using nlohmann::json;

/// Per GPU, which others may use too: the largest matrices, slots, and a reserve.
constexpr std::uint64_t gpu_memory_bytes = std::uint64_t{4} << 30U;
constexpr std::int32_t players = 2;

P2pShape contiguous(std::int64_t bytes) {
  const Datatype type = Datatype::contiguous(bytes / 8, Scalar::float64);
  return {"contiguous", type, type, bytes / 8};
}

P2pShape sub_matrix(std::int64_t n) {
  const std::int64_t leading = n + 64;
  const Datatype type = Datatype::vector(n, n, leading, Scalar::float64);
  return {fmt::format("sub-matrix {}", n), type, type, n * leading};
}

P2pShape triangle(std::int64_t n) {
  const Datatype type =
      Datatype::triangle({.rows = n, .columns = n, .leading = n}, Scalar::float64);
  return {fmt::format("triangle {}", n), type, type, n * n};
}

P2pShape transpose(std::int64_t n) {
  const Datatype row = Datatype::vector(n, 1, n, Scalar::float64);
  return {fmt::format("transpose {}", n), Datatype::contiguous(n * n, Scalar::float64),
          Datatype::hvector(n, 1, 8, row), n * n};
}

P2pShape gather(std::int64_t n) {
  const std::int64_t leading = n + 64;
  return {fmt::format("gather {}", n), Datatype::vector(n, n, leading, Scalar::float64),
          Datatype::contiguous(n * n, Scalar::float64), n * leading};
}

/// Location of the two nodes' memory.
struct Places {
  enum class Kind : std::uint8_t { host, locked, device };
  std::string name;
  Kind leading = Kind::host;
  Kind following = Kind::host;
};

struct Row {
  Places places;
  std::string shape;
  std::int64_t bytes = 0;
  std::string path;
  double us = 0;
  std::optional<double> contiguous_us;  ///< of the same size, by the same path
  std::optional<double> raw_us;
  std::int32_t window = 1;  ///< messages in flight in the figures below
  double stream_us = 0;     ///< per message
  std::optional<double> raw_stream_us;
  std::string raw_name;
  bool is_right = false;

  /// GB/s.
  [[nodiscard]] double rate() const { return static_cast<double>(bytes) / us * 1e-3; }
  [[nodiscard]] double stream_rate() const { return static_cast<double>(bytes) / stream_us * 1e-3; }
};

class Bench {
 public:
  Bench(const BenchP2pOptions& options, MPI_Comm communicator, DeviceSet& devices)
      : options_(options),
        communicator_(communicator),
        endpoint_options_(endpoint_options()),
        wire_(communicator, {endpoint_options_.window_bytes(), !options.apart}) {
    for (const auto& device : devices.devices) own_.push_back(device.get());
    endpoint_ = std::make_unique<p2p::Endpoint>(
        wire_, endpoint_options_, [] {}, own_);
  }

  [[nodiscard]] bool is_first() const { return wire_.node().value() == 0; }

  [[nodiscard]] std::vector<Row> run() {
    std::vector<Row> rows;
    for (const Places& places : all_places()) {
      for (std::int64_t bytes = 8; bytes <= options_.bytes_max; bytes *= 8) {
        measure(places, contiguous(bytes), rows);
      }
      for (const std::int64_t n : options_.orders) {
        for (const P2pShape& shape : {sub_matrix(n), triangle(n), gather(n), transpose(n)}) {
          if (shape.bytes() <= options_.bytes_max) measure(places, shape, rows);
        }
      }
    }
    end();
    return rows;
  }

 private:
  [[nodiscard]] p2p::Endpoint::Options endpoint_options() {
    p2p::Endpoint::Options result;
    if (!options_.path.empty()) result.path = p2p::path_named(options_.path);
    const MpsPresence mps = look_around().mps;
    result.processes_take_turns = !mps.is_connected && !mps.has_pipes;
    result.sizes.ring_piece_bytes = options_.ring_piece_bytes;
    result.sizes.ring_slots = options_.ring_slots;
    result.ring_slots = std::max(result.ring_slots, options_.ring_slots);
    if (!options_.explains) return result;
    result.report = [this](const p2p::MessageReport& report) {
      if (is_telling_) print(explain(report) + "\n");
    };
    if (options_.verbosity == Verbosity::verbose) {
      result.fragment = [this](const p2p::FragmentReport& fragment) {
        if (is_telling_) fragments_.push_back(fragment);
      };
    }
    return result;
  }

  /// Prints the start and end of each fragment of the last message on this node.
  void tell_fragments() {
    if (fragments_.empty()) return;
    const std::int64_t origin =
        std::ranges::min_element(fragments_, {}, &p2p::FragmentReport::begun_ns)->begun_ns;
    std::string text;
    for (const p2p::FragmentReport& f : fragments_) {
      text += fmt::format("  node {} {:<8} {:>10} bytes from {:>10} on: {:>9.1f} to {:>9.1f} us\n",
                          wire_.node().value(), name_of(f.kind), f.range.bytes, f.range.begin,
                          static_cast<double>(f.begun_ns - origin) * 1e-3,
                          static_cast<double>(f.ended_ns - origin) * 1e-3);
    }
    print(text);
    fragments_.clear();
  }

  [[nodiscard]] std::vector<Places> all_places() const {
    std::int32_t fewest = static_cast<std::int32_t>(own_.size());
    std::int32_t mine = fewest;
    check_mpi(MPI_Allreduce(&mine, &fewest, 1, MPI_INT32_T, MPI_MIN, communicator_),
              "MPI_Allreduce");
    using Kind = Places::Kind;
    std::vector<Places> places{{"host-host", Kind::host, Kind::host}};
    if (fewest > 0) {
      places.push_back({"device-device", Kind::device, Kind::device});
      places.push_back({"locked-device", Kind::locked, Kind::device});
      places.push_back({"host-device", Kind::host, Kind::device});
    }
    return places;
  }

  [[nodiscard]] P2pPlace place_of(const Places& places) const {
    switch (is_first() ? places.leading : places.following) {
      case Places::Kind::host:
        return {};
      case Places::Kind::locked:
        return {nullptr, own_.front()};
      case Places::Kind::device:
        return {own_.front(), nullptr};
    }
    return {};
  }

  void measure(const Places& places, const P2pShape& shape, std::vector<Row>& rows) {
    Row row;
    row.places = places;
    row.shape = shape.name;
    row.bytes = shape.bytes();
    if (fmt::format("{} {}", places.name, shape.name).find(options_.only) == std::string::npos) {
      return;
    }
    const P2pShape plain = contiguous(shape.bytes());
    const bool is_plain = shape.name == plain.name;
    const P2pPlace place = place_of(places);
    P2pGame game(communicator_, *endpoint_, place, shape);
    // Contiguous messages use the same memory and cache state as what they are compared with.
    std::optional<P2pGame> contiguous_game;
    if (!is_plain) contiguous_game.emplace(communicator_, *endpoint_, place, plain);
    P2pGame& reference = is_plain ? game : *contiguous_game;
    int right = game.is_right() ? 1 : 0;
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, communicator_),
              "MPI_Allreduce");
    row.is_right = right == 1;
    const int rounds = rounds_for(game);
    static_cast<void>(reference.play(2));
    std::vector<double> ours;
    std::vector<double> others;
    std::vector<double> raws;
    row.window = window_for(row.bytes);
    const int many = 2 * std::max(rounds, static_cast<int>(row.window));
    std::vector<double> streams;
    std::vector<double> raw_streams;
    for (std::int32_t r = 0; r < options_.repetitions; ++r) {
      if (!is_plain) others.push_back(reference.play(rounds) * 1e6);
      if (const auto raw = reference.raw(rounds)) raws.push_back(*raw * 1e6);
      ours.push_back(game.play(rounds) * 1e6);
      streams.push_back(game.stream(many, row.window) * 1e6);
      const auto raw_stream = reference.raw_stream(many, row.window);
      if (raw_stream) raw_streams.push_back(*raw_stream * 1e6);
    }
    is_telling_ = true;
    static_cast<void>(game.play(1));
    is_telling_ = false;
    tell_fragments();
    row.us = median(ours);
    if (!is_plain) row.contiguous_us = median(others);
    if (!raws.empty()) row.raw_us = median(raws);
    row.raw_name = reference.raw_name();
    row.path = name_of(game.path());
    row.stream_us = median(streams);
    if (!raw_streams.empty()) row.raw_stream_us = median(raw_streams);
    tell(row);
    rows.push_back(row);
    game.close();
    if (contiguous_game) contiguous_game->close();
  }

  [[nodiscard]] int rounds_for(P2pGame& game) {
    double each = std::max(game.play(2), 1e-7);
    check_mpi(MPI_Bcast(&each, 1, MPI_DOUBLE, 0, communicator_), "MPI_Bcast");
    return std::max(1, static_cast<int>(options_.seconds / each / 2));
  }

  /// Messages in flight, limited by cache size and time.
  [[nodiscard]] std::int32_t window_for(std::int64_t bytes) const {
    constexpr std::int64_t bytes_max = std::int64_t{64} << 20U;
    constexpr std::int64_t least = 2;
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(bytes_max / bytes, least, options_.window));
  }

  void tell(const Row& row) {
    if (!is_first() || options_.verbosity == Verbosity::quiet) return;
    constexpr std::string_view form =
        "{:<14} {:<15} {:>10} {:<8} {:>9} {:>8} {:>5} {:>5} {:>8} {:>5}  {}\n";
    if (!std::exchange(has_heading_, true)) {
      print(
          fmt::format(fmt::runtime(form), "", "", "", "", "alone", "", "", "", "together", "", ""));
      print(fmt::format(fmt::runtime(form), "places", "what", "bytes", "path", "us", "GB/s", "raw",
                        "plain", "GB/s", "raw", ""));
    }
    const auto ratio = [&](const std::optional<double>& other, double us) {
      return other ? fmt::format("{:.2f}", *other / us) : "-";
    };
    print(fmt::format(
        fmt::runtime(form), row.places.name, row.shape, row.bytes, row.path,
        fmt::format("{:.2f}", row.us), fmt::format("{:.2f}", row.rate()), ratio(row.raw_us, row.us),
        ratio(row.contiguous_us, row.us), fmt::format("{:.2f}", row.stream_rate()),
        ratio(row.raw_stream_us, row.stream_us), row.is_right ? row.raw_name : "WRONG"));
  }

  /// Unmaps all memory of the other node.
  void end() {
    const P2pShape nothing = contiguous(8);
    P2pGame last(communicator_, *endpoint_, {}, nothing);
    last.meet();
    while (!endpoint_->is_idle()) endpoint_->progress();
    last.meet();
    endpoint_->close();
    while (!endpoint_->is_closed()) endpoint_->progress();
    last.meet();
  }

  const BenchP2pOptions& options_;
  MPI_Comm communicator_;
  bool is_telling_ = false;
  std::vector<p2p::FragmentReport> fragments_;
  bool has_heading_ = false;
  p2p::Endpoint::Options endpoint_options_;
  p2p::MpiWire wire_;
  std::vector<Device*> own_;
  std::unique_ptr<p2p::Endpoint> endpoint_;
};

void write(const std::vector<Row>& rows, const std::string& path, Run& run) {
  json list = json::array();
  for (const Row& row : rows) {
    json one{{"places", row.places.name}, {"what", row.shape},      {"bytes", row.bytes},
             {"path", row.path},          {"microseconds", row.us}, {"gb_per_second", row.rate()},
             {"valid", row.is_right},     {"raw", row.raw_name}};
    one["together"] = {{"messages", row.window}, {"microseconds", row.stream_us}};
    one["together"]["raw_microseconds"] =
        row.raw_stream_us ? json(*row.raw_stream_us) : json(nullptr);
    one["raw_microseconds"] = row.raw_us ? json(*row.raw_us) : json(nullptr);
    one["contiguous_microseconds"] = row.contiguous_us ? json(*row.contiguous_us) : json(nullptr);
    list.push_back(std::move(one));
  }
  const json all{{"version", heddle_version()}, {"messages", std::move(list)}};
  run.results().add_text(path, json_text(all));
  run.results().commit();
}

}  // namespace

int bench_p2p(const BenchP2pOptions& options, Run& run) {
  const bool is_first = run.launcher().rank == 0;
  Config config;
  run.mpi().throw_together(trouble_of([&] {
    if (run.launcher().size < players) {
      throw Error(ErrorCode::usage, "messages need two nodes: mpiexec.mpich -n 2 heddle bench p2p");
    }
    if (!options.path.empty() && !p2p::path_named(options.path)) {
      throw Error(ErrorCode::usage,
                  fmt::format("--path {}: expected one of eager, message, shared, get, put, ring",
                              options.path));
    }
    config = Config::from_text("{}", "bench", options.overrides);
    FileUses files;
    if (options.report) files.writes("--report", *options.report);
    if (is_first) files.check_writable(run.janitor());
  }));
  const Communicator communicator(MPI_COMM_WORLD);
  const GpuNeighbours neighbours = find_gpu_neighbours(config.runtime.devices, communicator);
  DeviceSet devices;
  communicator.throw_together(trouble_of([&] {
    DeviceOptions wanted = wanted_devices(config.runtime.devices);
    wanted.cuda.nodes = neighbours.nodes;
    wanted.cuda.node = neighbours.node;
    if (!wanted.cuda.memory_bytes) wanted.cuda.memory_bytes = gpu_memory_bytes;
    devices = make_devices(wanted);
  }));
  MPI_Comm two = MPI_COMM_NULL;
  const int color = communicator.rank() < players ? 0 : MPI_UNDEFINED;
  check_mpi(MPI_Comm_split(MPI_COMM_WORLD, color, communicator.rank(), &two), "MPI_Comm_split");
  if (two == MPI_COMM_NULL) return 0;
  std::vector<Row> rows;
  {
    Bench bench(options, two, devices);
    if (is_first && options.verbosity != Verbosity::quiet) {
      print(
          fmt::format("heddle {}: bench p2p, nodes 0 and 1, {}\nOne way, medians of {}; each "
                      "message alone, and up to {} under way together. raw: what\nthe hardware "
                      "takes for as many contiguous bytes, over heddle's time; plain: heddle's\n"
                      "contiguous message likewise.\n\n",
                      heddle_version(), devices.why, options.repetitions, options.window));
    }
    rows = bench.run();
  }
  check_mpi(MPI_Comm_free(&two), "MPI_Comm_free");
  const bool all_right = std::ranges::all_of(rows, &Row::is_right);
  if (is_first && options.report) write(rows, *options.report, run);
  if (!all_right && is_first) print_error("some messages did not arrive as they should");
  return all_right ? 0 : exit_status(ErrorCode::internal);
}

}  // namespace heddle
