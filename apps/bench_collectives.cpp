#include "apps/bench_collectives.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <mpi.h>
#include <optional>
#include <thread>
#include <utility>

#include "apps/bench_devices.hpp"
#include "apps/collective_calls.hpp"
#include "apps/collective_cases.hpp"
#include "apps/collective_elements.hpp"
#include "apps/collective_limit.hpp"
#include "apps/collective_memory.hpp"
#include "apps/collective_table.hpp"
#include "apps/command.hpp"
#include "apps/file_uses.hpp"
#include "apps/report.hpp"
#include "base/median.hpp"
#include "config/config.hpp"
#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/schedule/choice.hpp"
#include "node-runtime/node.hpp"
#include "node-runtime/transport/communicator.hpp"
#include "node-runtime/wanted_devices.hpp"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

/// At least and at most as many calls in a turn.
constexpr std::int64_t calls_min = 5;
constexpr std::int64_t calls_max = 20000;

class CollectivesBench {
 public:
  CollectivesBench(const BenchCollectivesOptions& options, const Config& config,
                   const Communicator& all)
      : options_(options), config_(config), all_(all), kind_(block_kind(options.datatype)) {
    for (CollectiveCase& what :
         collective_cases(options.operations, options.bytes_min, options.bytes_max)) {
      MeasuredCollective one(std::move(what));
      one.count = one.bytes / 8;
      if (one.bytes > 0) one.bytes = 8 * shape_of(one).doubles();
      cases_.push_back(std::move(one));
    }
    const std::int64_t largest = options.bytes_max / 8 * 2 + 64;
    const auto doubles = static_cast<std::size_t>(largest * all_.size());
    input_.resize(doubles);
    output_.resize(doubles);
  }

  /// All cases by turns with MPI's. `neighbours`: of the nodes that see the same GPUs.
  std::vector<MeasuredCollective> run(const GpuNeighbours& neighbours) {
    if (!options_.only.empty()) keep_wanted();
    for (std::int32_t turn = 0; turn < options_.repetitions; ++turn) {
      if (kind_ == BlockKind::contiguous) measure_mpi(neighbours);
      Node node(config_, MPI_COMM_WORLD);
      measure_heddle(node);
      node.stop();
    }
    return std::move(cases_);
  }

  /// What the group held on this node, behind run().
  [[nodiscard]] const std::string& memory() const { return memory_; }

 private:
  /// What the calls of a turn work on.
  struct Setting {
    const Group& group;
    CollectiveMemory& input;
    CollectiveMemory& output;
    Stream* stream;  ///< null: blocking calls
  };

  [[nodiscard]] int rank() const { return all_.rank(); }
  [[nodiscard]] int size() const { return all_.size(); }
  [[nodiscard]] bool is_on_device() const {
    return options_.place == "device" || (options_.place == "mixed" && rank() % 2 == 1);
  }
  [[nodiscard]] BlockShape shape_of(const MeasuredCollective& one) const {
    return {one.count, kind_};
  }

  /// Times `call` behind `meet`, in microseconds for each call, the slowest rank's, from the last
  /// one's begin on; `reduce_max` brings the largest of all ranks.
  template <class Call, class Meet, class ReduceMax>
  [[nodiscard]] std::vector<double> time(const Call& call, const Meet& meet,
                                         const ReduceMax& reduce_max) const {
    const std::chrono::microseconds skew(options_.skew_us);
    const auto share = skew * rank() / (size() - 1);
    const auto once = [&] {
      meet();
      const Clock::time_point begin = Clock::now();
      while (Clock::now() < begin + share) std::this_thread::yield();
      call();
      return std::chrono::duration<double, std::micro>(Clock::now() - begin - skew).count();
    };
    for (int i = 0; i < 2; ++i) static_cast<void>(once());
    // A few at a time: where ranks share cores some take a thousand times as long as others.
    std::vector<double> times;
    double elapsed_us = 0;
    std::int64_t calls = calls_min;
    do {
      std::vector<double> some(static_cast<std::size_t>(calls));
      for (double& one : some) one = once();
      reduce_max(some);
      for (const double one : some) elapsed_us += one + static_cast<double>(options_.skew_us);
      times.insert(times.end(), some.begin(), some.end());
      calls = std::min<std::int64_t>(2 * calls, 500);
    } while (elapsed_us < options_.seconds * 1e6 && std::cmp_less(times.size(), calls_max));
    std::ranges::sort(times);
    return times;
  }

  [[nodiscard]] std::vector<double> time_heddle(const Setting& with,
                                                const CollectiveCall& call) const {
    return time_with(with, [&] { run_collective(with.group, call, with.stream); });
  }

  template <class Work>
  [[nodiscard]] std::vector<double> time_with(const Setting& with, const Work& work) const {
    return time(
        work, [&] { with.group.barrier(); },
        [&](std::vector<double>& all) {
          with.group.all_reduce(
              {all.data(), static_cast<std::int64_t>(all.size()), Scalar::float64},
              ReduceOperation::maximum());
        });
  }

  /// Calls `work(setting)` with the memory that operations work on.
  template <class Work>
  void with_setting(Node& node, const Work& work) {
    const Group group = node.group();
    Device* const device = is_on_device() ? &node.device(0) : nullptr;
    CollectiveMemory input(input_, device);
    CollectiveMemory output(output_, device);
    const std::unique_ptr<Stream> stream =
        options_.on_stream ? node.device(0).create_stream() : nullptr;
    work(Setting{group, input, output, stream.get()});
    for (const CollectiveMemory* const memory : {&input, &output}) {
      if (memory->is_on_device()) group.release(memory->address());
    }
  }

  void measure_heddle(Node& node) {
    with_setting(node, [&](const Setting& with) {
      for (MeasuredCollective& one : cases_) measure(one, with);
      memory_ = with.group.describe_memory();
      measure_limit(node, with);
    });
  }

  /// Copies the same bytes; after the operations, since the copies overwrite their results.
  void measure_limit(Node& node, const Setting& with) {
    const auto& local = all_.local_processes();
    const bool is_one_host = std::ranges::none_of(local, [](auto process) { return process == 0; });
    {
      CopyLimit limit(with.group, with.input, with.output,
                      is_on_device() ? &node.device(0) : nullptr, is_one_host);
      if (!limit.why_not().empty()) return;
      for (MeasuredCollective& one : cases_) {
        const auto bytes = static_cast<std::int64_t>(bus_bytes(one, size()));
        if (bytes == 0 || bytes > limit.bytes_max()) continue;
        one.limit_us.push_back(median(time_with(with, [&] { limit.copy(bytes); })));
      }
    }
    with.group.barrier();  // nobody copies from, or maps, memory that is released next
  }

  /// Drops the cases whose operation and way do not contain what is wanted.
  void keep_wanted() {
    Node node(config_, MPI_COMM_WORLD);
    std::vector<std::string> names;
    with_setting(node, [&](const Setting& with) {
      std::erase_if(cases_, [&](const MeasuredCollective& one) {
        const Collective begun = begin_collective(with.group, call_of(one, with));
        begun.wait();
        const std::string name = fmt::format("{} {}", one.operation, begun.report().algorithm);
        const bool is_unwanted = name.find(options_.only) == std::string::npos;
        if (is_unwanted && std::ranges::find(names, name) == names.end()) names.push_back(name);
        return is_unwanted;
      });
    });
    node.stop();
    if (!cases_.empty()) return;
    throw Error(ErrorCode::usage,
                fmt::format("--only '{}': no row's operation and way contain it; there are: {}",
                            options_.only, fmt::join(names, ", ")));
  }

  void measure(MeasuredCollective& one, const Setting& with) {
    CollectiveCall call = call_of(one, with);
    CollectiveCall in_place = call;
    in_place.is_in_place = true;
    const bool is_first = one.heddle_us.empty();
    if (is_first) validate(one, with, call);
    const std::vector<double> times = time_heddle(with, call);
    one.heddle_us.push_back(times[times.size() / 2]);
    one.heddle_p99_us.push_back(times[times.size() * 99 / 100]);
    if (has_in_place(one.operation)) {
      if (is_first) validate(one, with, in_place);
      // Sums of sums stay finite.
      std::ranges::fill(output_, 0.0);
      with.output.bring_in();
      one.in_place_us.push_back(median(time_heddle(with, in_place)));
    }
    if (!options_.explains || !one.algorithm.empty()) return;
    // What is chosen beside the board: the operation begun once more.
    const Collective begun = begin_collective(with.group, call);
    begun.wait();
    const CollectiveReport report = begun.report();
    one.algorithm = report.algorithm;
    one.predicted_us = report.predicted_s * 1e6;
    one.others = report.others;
    one.ranks_us = report.predicted_ranks_s * 1e6;
    one.places_us = report.predicted_places_s * 1e6;
  }

  [[nodiscard]] CollectiveCall call_of(const MeasuredCollective& one, const Setting& with) const {
    const BlockShape shape = shape_of(one);
    CollectiveCall call{one.operation,
                        {with.input.address(), shape.elements(), shape.type()},
                        {with.output.address(), shape.elements(), shape.type()},
                        false,
                        {}};
    call.options.algorithm = options_.algorithm;
    if (!options_.order.empty()) {
      call.options.order = options_.order == name_of(Order::places) ? Order::places : Order::ranks;
    }
    call.options.fragment_bytes = options_.fragment_bytes;
    return call;
  }

  /// Every element that comes to this rank, and that nothing else changes.
  void validate(MeasuredCollective& one, const Setting& with, const CollectiveCall& call) {
    if (one.operation == "barrier") return run_collective(with.group, call, with.stream);
    const CollectiveElements elements(one.operation, rank(), size(), shape_of(one));
    elements.write(input_, output_, call.is_in_place);
    with.input.bring_in();
    with.output.bring_in();
    run_collective(with.group, call, with.stream);
    with.output.bring_back();
    std::int64_t wrong = elements.are_right(output_) ? 0 : 1;
    with.group.all_reduce({&wrong, 1, Scalar::int64}, ReduceOperation::maximum());
    one.is_right = one.is_right && wrong == 0;
  }

  /// All cases, without a node: MPI alone.
  void measure_mpi(const GpuNeighbours& neighbours) {
    DeviceSet devices;
    std::optional<StagedMemory> staged;
    const std::size_t doubles = static_cast<std::size_t>(options_.bytes_max / 8 * size());
    all_.throw_together(trouble_of([&] {
      if (!is_on_device()) return;
      DeviceOptions wanted = wanted_devices(config_.runtime.devices);
      wanted.cuda.nodes = neighbours.nodes;
      wanted.cuda.node = neighbours.node;
      wanted.count = 1;
      wanted.cuda.memory_bytes = 2 * doubles * sizeof(double) + reserve_bytes;
      devices = make_devices(wanted);
      staged.emplace(*devices.devices.front(), doubles);
    }));
    for (MeasuredCollective& one : cases_) {
      const auto extents = collective_extents(one.operation, rank(), size(), one.count);
      const double* const in = staged ? staged->input() : input_.data();
      double* const out = staged ? staged->output() : output_.data();
      one.mpi_us.push_back(median(time(
          [&] {
            if (staged) staged->bring_input(extents.in);
            check_mpi(run_mpi_collective(one.operation, in, out, static_cast<int>(one.count)),
                      "a collective of MPI's");
            if (staged) staged->bring_output(extents.out);
          },
          [] { check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); },
          [](std::vector<double>& largest) {
            check_mpi(MPI_Allreduce(MPI_IN_PLACE, largest.data(), static_cast<int>(largest.size()),
                                    MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD),
                      "MPI_Allreduce");
          })));
    }
  }

  /// The part of a GPU's memory that is left to the driver.
  static constexpr std::uint64_t reserve_bytes = std::uint64_t{64} << 20U;

  const BenchCollectivesOptions& options_;
  const Config& config_;
  const Communicator& all_;
  const BlockKind kind_;
  std::vector<MeasuredCollective> cases_;
  std::vector<double> input_;  ///< for the largest case
  std::vector<double> output_;
  std::string memory_;  ///< that the group held behind the last operation
};

std::string heading(const BenchCollectivesOptions& options, int nodes) {
  const std::string memory = options.place == "mixed"    ? "odd nodes' memory on devices"
                             : options.place == "device" ? "device memory"
                                                         : "host memory";
  std::string text = fmt::format(
      "heddle {}: bench collectives, {} nodes, {}, {}{}\nSlowest rank, medians of {} turns; bytes "
      "of a rank's block. MPI: its time over heddle's{}. Limit: the time of copies between the "
      "same "
      "places, all at once, over heddle's.\n",
      heddle_version(), nodes, memory,
      options.datatype == "contiguous" ? "float64" : fmt::format("float64 as {}", options.datatype),
      options.on_stream ? ", on streams" : "", options.repetitions,
      options.place == "host" ? "" : ", staged by page-locked memory");
  if (options.skew_us > 0) {
    text += fmt::format("The last rank begins {} us behind the first; times from then on.\n",
                        options.skew_us);
  }
  return text + "\n";
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
    static_cast<void>(collectives::overrides_of(options.algorithm));  // throws for unknown ones
    if (options.ranks_per_device > 0 && !needs_devices(options)) {
      throw Error(
          ErrorCode::usage,
          "--ranks-per-device is for memory of devices: --place device or mixed, or --stream");
    }
    const char* const backend = needs_devices(options) ? "auto" : "none";
    config = Config::from_text(
        fmt::format("runtime: {{cpu_workers: 1, devices: {{backend: {}}}}}", backend), "bench",
        options.overrides);
    FileUses files;
    if (options.report) files.writes("--report", *options.report);
    if (is_first) files.check_writable(run.janitor());
  }));
  const Communicator communicator(MPI_COMM_WORLD);
  const GpuNeighbours neighbours = find_gpu_neighbours(config.runtime.devices, communicator);
  check_devices(options, config, neighbours, communicator);
  if (is_first && options.verbosity != Verbosity::quiet) {
    print(heading(options, communicator.size()));
  }
  CollectivesBench bench(options, config, communicator);
  const std::vector<MeasuredCollective> cases = bench.run(neighbours);
  const bool all_right = std::ranges::all_of(cases, &MeasuredCollective::is_right);
  if (is_first) {
    if (options.verbosity != Verbosity::quiet) {
      print(collectives_table(cases, communicator.size(), options.explains));
      if (options.explains) print("\n" + bench.memory());
    }
    if (options.report) {
      write_collectives(cases,
                        {communicator.size(), options.place, options.datatype, options.on_stream},
                        *options.report, run);
    }
    if (!all_right) print_error("some elements were not what they should be");
  }
  return all_right ? 0 : exit_status(ErrorCode::internal);
}

}  // namespace heddle
