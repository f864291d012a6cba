#include "apps/bench_collectives.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/collective_cases.hpp"
#include "apps/command.hpp"
#include "apps/file_uses.hpp"
#include "apps/report.hpp"
#include "base/median.hpp"
#include "base/units.hpp"
#include "config/config.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// At least and at most as many calls in a turn.
constexpr std::int64_t calls_min = 5;
constexpr std::int64_t calls_max = 20000;

/// One operation of one size, and its memory.
struct Case : CollectiveCase {
  explicit Case(CollectiveCase what) : CollectiveCase(std::move(what)) {}

  std::int64_t count = 0;  ///< doubles of a block

  std::vector<double> heddle_us;
  std::vector<double> heddle_p99_us;
  std::vector<double> mpi_us;
  std::string algorithm;
  double predicted_us = 0;
  std::vector<std::string> others;
  double ranks_us = 0;  ///< predicted in each order; 0: it is no reduction
  double places_us = 0;
  bool is_right = true;
};

/// Memory of all cases: the largest of them.
struct Buffers {
  std::vector<double> input;
  std::vector<double> output;
};

bool has_blocks(const std::string& operation, bool of_input) {
  if (operation == "all_to_all") return true;
  return of_input ? operation == "scatter" || operation == "reduce_scatter"
                  : operation == "gather" || operation == "all_gather";
}

/// Numbers whose sums over a few thousand ranks are exact.
double element(int rank, std::int64_t i) {
  return static_cast<double>(rank * 31 + i % 1009);
}

class CollectivesBench {
 public:
  CollectivesBench(const BenchCollectivesOptions& options, const Config& config,
                   const Communicator& all)
      : options_(options), config_(config), all_(all) {
    for (CollectiveCase& what :
         collective_cases(options.operations, options.bytes_min, options.bytes_max)) {
      Case one(std::move(what));
      one.count = one.bytes / 8;
      if (options.triangles && one.bytes > 0) {
        const std::int64_t order = order_of(one);
        one.bytes = 8 * (order * (order + 1) / 2);
      }
      cases_.push_back(std::move(one));
    }
    const std::int64_t largest = options.bytes_max / 8 * 2 + 64;
    const auto doubles = static_cast<std::size_t>(largest * all_.size());
    buffers_.input.resize(doubles);
    buffers_.output.resize(doubles);
  }

  /// All cases by turns with MPI's.
  std::vector<Case> run() {
    for (std::int32_t turn = 0; turn < options_.repetitions; ++turn) {
      for (Case& one : cases_) measure_mpi(one);
      Node node(config_, MPI_COMM_WORLD);
      const Group group = node.group();
      for (Case& one : cases_) measure(one, group);
      node.stop();
    }
    return std::move(cases_);
  }

 private:
  [[nodiscard]] int rank() const { return all_.rank(); }
  [[nodiscard]] int size() const { return all_.size(); }

  /// Times `call` behind `meet`, in seconds for each call, the slowest rank's; `reduce_max` brings
  /// the largest of all ranks.
  template <class Call, class Meet, class ReduceMax>
  [[nodiscard]] std::vector<double> time(const Call& call, const Meet& meet,
                                         const ReduceMax& reduce_max) const {
    const auto once = [&] {
      meet();
      const Clock::time_point begin = Clock::now();
      call();
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    for (int i = 0; i < 2; ++i) static_cast<void>(once());
    // A few at a time: where ranks share cores some take a thousand times as long as others.
    std::vector<double> times;
    double elapsed = 0;
    std::int64_t calls = calls_min;
    do {
      std::vector<double> some(static_cast<std::size_t>(calls));
      for (double& one : some) one = once();
      reduce_max(some);
      for (const double one : some) elapsed += one;
      times.insert(times.end(), some.begin(), some.end());
      calls = std::min<std::int64_t>(2 * calls, 500);
    } while (elapsed < options_.seconds && std::cmp_less(times.size(), calls_max));
    return times;
  }

  void measure(Case& one, const Group& group) {
    CollectiveOptions options;
    options.algorithm = options_.algorithm;
    if (!options_.order.empty()) {
      options.order = options_.order == name_of(Order::places) ? Order::places : Order::ranks;
    }
    options.fragment_bytes = options_.fragment_bytes;
    const auto in = [&](std::int64_t count) {
      return Outgoing{buffers_.input.data(), count, type_of(one)};
    };
    const auto out = [&](std::int64_t count) {
      return Incoming{buffers_.output.data(), count, type_of(one)};
    };
    const std::int64_t count = options_.triangles ? 1 : one.count;
    const auto sum = ReduceOperation::sum();
    const std::function<void()> call = [&, operation = one.operation] {
      if (operation == "barrier") group.barrier(options);
      if (operation == "broadcast") group.broadcast(out(count), 0, options);
      if (operation == "scatter") group.scatter(in(count), out(count), 0, options);
      if (operation == "gather") group.gather(in(count), out(count), 0, options);
      if (operation == "all_gather") group.all_gather(in(count), out(count), options);
      if (operation == "reduce") group.reduce(in(count), out(count), sum, 0, options);
      if (operation == "all_reduce") group.all_reduce(in(count), out(count), sum, options);
      if (operation == "reduce_scatter") group.reduce_scatter(in(count), out(count), sum, options);
      if (operation == "all_to_all") group.all_to_all(in(count), out(count), options);
      if (operation == "scan") group.scan(in(count), out(count), sum, options);
    };
    if (one.heddle_us.empty()) validate(one, group, call);
    std::vector<double> times = time(
        call, [&] { group.barrier(); },
        [&](std::vector<double>& all) {
          group.all_reduce({all.data(), static_cast<std::int64_t>(all.size()), Scalar::float64},
                           ReduceOperation::maximum());
        });
    for (double& t : times) t *= 1e6;
    std::ranges::sort(times);
    one.heddle_us.push_back(times[times.size() / 2]);
    one.heddle_p99_us.push_back(times[times.size() * 99 / 100]);
    if (!options_.explains || !one.algorithm.empty()) return;
    const CollectiveReport report = explain(one, group, options);
    one.algorithm = report.algorithm;
    one.predicted_us = report.predicted_s * 1e6;
    one.others = report.others;
    one.ranks_us = report.predicted_ranks_s * 1e6;
    one.places_us = report.predicted_places_s * 1e6;
  }

  /// What is chosen beside the board: the operation begun once more.
  [[nodiscard]] CollectiveReport explain(const Case& one, const Group& group,
                                         const CollectiveOptions& options) {
    const std::int64_t count = options_.triangles ? 1 : one.count;
    const Outgoing in{buffers_.input.data(), count, type_of(one)};
    const Incoming out{buffers_.output.data(), count, type_of(one)};
    const auto sum = ReduceOperation::sum();
    const std::string& o = one.operation;
    const Collective begun = o == "barrier"      ? group.begin_barrier(options)
                             : o == "broadcast"  ? group.begin_broadcast(out, 0, options)
                             : o == "scatter"    ? group.begin_scatter(in, out, 0, options)
                             : o == "gather"     ? group.begin_gather(in, out, 0, options)
                             : o == "all_gather" ? group.begin_all_gather(in, out, options)
                             : o == "reduce"     ? group.begin_reduce(in, out, sum, 0, options)
                             : o == "all_reduce" ? group.begin_all_reduce(in, out, sum, options)
                             : o == "reduce_scatter"
                                 ? group.begin_reduce_scatter(in, out, sum, options)
                             : o == "all_to_all" ? group.begin_all_to_all(in, out, options)
                                                 : group.begin_scan(in, out, sum, options);
    begun.wait();
    return begun.report();
  }

  /// Contiguous doubles; or a lower triangle with about as many.
  [[nodiscard]] Datatype type_of(const Case& one) const {
    if (!options_.triangles) return Scalar::float64;
    const std::int64_t n = order_of(one);
    return Datatype::triangle({.rows = n, .columns = n, .leading = n}, Scalar::float64);
  }
  [[nodiscard]] static std::int64_t order_of(const Case& one) {
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::sqrt(2 * static_cast<double>(one.count))));
  }

  /// Where the doubles of a block lie, in their order, and of the next block the first.
  struct Layout {
    std::vector<std::int64_t> places;
    std::int64_t extent = 0;
    [[nodiscard]] std::int64_t doubles() const { return static_cast<std::int64_t>(places.size()); }
    [[nodiscard]] std::size_t at(std::int64_t i) const {
      return static_cast<std::size_t>(i / doubles() * extent +
                                      places[static_cast<std::size_t>(i % doubles())]);
    }
  };
  [[nodiscard]] Layout layout_of(const Case& one) const {
    const std::int64_t rows = options_.triangles ? order_of(one) : one.count;
    const std::int64_t columns = options_.triangles ? rows : 1;
    Layout layout{{}, rows * columns};
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = c; r < rows; ++r) layout.places.push_back(c * rows + r);
    }
    return layout;
  }

  /// Every element that comes to this rank, and that nothing else changes.
  void validate(Case& one, const Group& group, const std::function<void()>& call) {
    if (one.operation == "barrier") return call();
    const Layout layout = layout_of(one);
    const std::int64_t n = layout.doubles();
    const std::int64_t in_blocks = has_blocks(one.operation, true) ? size() : 1;
    const std::int64_t out_blocks = has_blocks(one.operation, false) ? size() : 1;
    for (std::int64_t i = 0; i < n * in_blocks; ++i) {
      buffers_.input[layout.at(i)] = element(rank(), i);
    }
    const auto region = static_cast<std::size_t>(layout.extent * out_blocks);
    std::fill_n(buffers_.output.begin(), region, -1.0);
    std::vector<double> expected(region, -1.0);
    const auto sum = [&](std::int64_t i, int ranks) {
      double all = 0;
      for (int r = 0; r < ranks; ++r) all += element(r, i);
      return all;
    };
    const std::string& o = one.operation;
    const auto value = [&](std::int64_t i) {
      if (o == "broadcast") return element(0, i);
      if (o == "scatter") return element(0, rank() * n + i);
      if (o == "gather" || o == "all_gather") return element(static_cast<int>(i / n), i % n);
      if (o == "all_to_all") return element(static_cast<int>(i / n), rank() * n + i % n);
      if (o == "reduce_scatter") return sum(rank() * n + i, size());
      return sum(i, o == "scan" ? rank() + 1 : size());
    };
    const bool has_result = rank() == 0 || (o != "gather" && o != "reduce");
    for (std::int64_t i = 0; has_result && i < n * out_blocks; ++i) {
      expected[layout.at(i)] = value(i);
      if (o == "broadcast" && rank() == 0) buffers_.output[layout.at(i)] = value(i);
    }
    call();
    const bool is_right = std::equal(expected.begin(), expected.end(), buffers_.output.begin());
    std::int64_t wrong = is_right ? 0 : 1;
    group.all_reduce({&wrong, 1, Scalar::int64}, ReduceOperation::maximum());
    one.is_right = wrong == 0;
  }

  void measure_mpi(Case& one) const {
    if (options_.triangles) return;
    const int n = static_cast<int>(one.count);
    const double* const in = buffers_.input.data();
    auto* const out = const_cast<double*>(buffers_.output.data());  // NOLINT: measured memory
    const MPI_Comm all = MPI_COMM_WORLD;
    const std::string& o = one.operation;
    const std::function<int()> call = [&]() -> int {
      if (o == "barrier") return MPI_Barrier(all);
      if (o == "broadcast") return MPI_Bcast(out, n, MPI_DOUBLE, 0, all);
      if (o == "scatter") return MPI_Scatter(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, 0, all);
      if (o == "gather") return MPI_Gather(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, 0, all);
      if (o == "all_gather") return MPI_Allgather(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, all);
      if (o == "reduce") return MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, 0, all);
      if (o == "all_reduce") return MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, all);
      if (o == "reduce_scatter") {
        return MPI_Reduce_scatter_block(in, out, n, MPI_DOUBLE, MPI_SUM, all);
      }
      if (o == "all_to_all") return MPI_Alltoall(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, all);
      return MPI_Scan(in, out, n, MPI_DOUBLE, MPI_SUM, all);
    };
    std::vector<double> times =
        time([&] { check_mpi(call(), "a collective of MPI's"); },
             [&] { check_mpi(MPI_Barrier(all), "MPI_Barrier"); },
             [&](std::vector<double>& largest) {
               check_mpi(MPI_Allreduce(MPI_IN_PLACE, largest.data(),
                                       static_cast<int>(largest.size()), MPI_DOUBLE, MPI_MAX, all),
                         "MPI_Allreduce");
             });
    for (double& t : times) t *= 1e6;
    one.mpi_us.push_back(median(times));
  }

  const BenchCollectivesOptions& options_;
  const Config& config_;
  const Communicator& all_;
  std::vector<Case> cases_;
  Buffers buffers_;
};

std::string table(const std::vector<Case>& cases, int ranks, bool explains) {
  std::string out = fmt::format("{:<15} {:>10} {:>10} {:>10} {:>8} {:>10} {:>7}  {}\n", "operation",
                                "bytes", "us", "p99", "GB/s", "MPI us", "MPI", "");
  for (const Case& one : cases) {
    const double us = median(one.heddle_us);
    const bool has_mpi = !one.mpi_us.empty();
    const double mpi = has_mpi ? median(one.mpi_us) : 0;
    out +=
        fmt::format("{:<15} {:>10} {:>10.2f} {:>10.2f} {:>8} {:>10} {:>7}  {}\n", one.operation,
                    one.bytes, us, median(one.heddle_p99_us),
                    one.bytes > 0 ? fmt::format("{:.2f}", bus_gb_per_second(one, us, ranks)) : "-",
                    has_mpi ? fmt::format("{:.2f}", mpi) : "-",
                    has_mpi ? fmt::format("{:.2f}", mpi / us) : "-", one.is_right ? "" : "WRONG");
    if (!explains) continue;
    out += fmt::format("{:<15} {:>10} {:>10.2f}  predicted beside the board: {}\n", "", "",
                       one.predicted_us, one.algorithm);
    if (one.ranks_us > 0) {
      out += fmt::format("{:>39} in the order of ranks {:.2f} us, of places {:.2f} us\n", "",
                         one.ranks_us, one.places_us);
    }
    for (const std::string& other : one.others) out += fmt::format("{:>39} {}\n", "not", other);
  }
  return out;
}

void write_cases(const std::vector<Case>& cases, int ranks, const std::string& path, Run& run) {
  json list = json::array();
  for (const Case& one : cases) {
    const double us = median(one.heddle_us);
    list.push_back(
        {{"operation", one.operation},
         {"bytes", one.bytes},
         {"ranks", ranks},
         {"microseconds", us},
         {"p99_microseconds", median(one.heddle_p99_us)},
         {"gb_per_second", bus_gb_per_second(one, us, ranks)},
         {"mpi_microseconds", one.mpi_us.empty() ? json(nullptr) : json(median(one.mpi_us))},
         {"valid", one.is_right}});
  }
  const json all{{"version", heddle_version()}, {"collectives", std::move(list)}};
  run.results().add_text(path, json_text(all));
  run.results().commit();
}

}  // namespace

int bench_collectives(const BenchCollectivesOptions& options, Run& run) {
  const bool is_first = run.launcher().rank == 0;
  Config config;
  run.mpi().throw_together(trouble_of([&] {
    if (run.launcher().size < 2) {
      throw Error(ErrorCode::usage,
                  "collectives need two nodes: mpiexec.mpich -n 2 heddle bench collectives");
    }
    check_collective_cases(options.operations, options.bytes_min, options.bytes_max);
    config = Config::from_text("runtime: {cpu_workers: 1, devices: {backend: none}}", "bench",
                               options.overrides);
    FileUses files;
    if (options.report) files.writes("--report", *options.report);
    if (is_first) files.check_writable(run.janitor());
  }));
  const Communicator communicator(MPI_COMM_WORLD);
  if (is_first && options.verbosity != Verbosity::quiet) {
    print(
        fmt::format("heddle {}: bench collectives, {} nodes, host memory, {}\nSlowest rank, "
                    "medians of {} turns; "
                    "bytes of a rank's block. MPI: its time over heddle's.\n\n",
                    heddle_version(), communicator.size(),
                    options.triangles ? "lower triangles" : "float64", options.repetitions));
  }
  const std::vector<Case> cases = CollectivesBench(options, config, communicator).run();
  const bool all_right = std::ranges::all_of(cases, &Case::is_right);
  if (is_first) {
    if (options.verbosity != Verbosity::quiet) {
      print(table(cases, communicator.size(), options.explains));
    }
    if (options.report) write_cases(cases, communicator.size(), *options.report, run);
    if (!all_right) print_error("some elements were not what they should be");
  }
  return all_right ? 0 : exit_status(ErrorCode::internal);
}

}  // namespace heddle
