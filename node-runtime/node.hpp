#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mpi.h>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "config/config.hpp"
#include "node-runtime/device/emulated/options.hpp"
#include "node-runtime/machine/prepare.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/threads/engine.hpp"
#include "node-runtime/threads/program.hpp"
#include "node-runtime/topology/cpu.hpp"
#include "node-runtime/transport/communicator.hpp"

namespace heddle {

namespace messages {
class Endpoint;
}

/// A submitted job. A handle: the job goes on when it is dropped, and the handle may outlive the
/// node. Then, and where a call comes out of order, functions throw Error(usage).
class Job {
 public:
  explicit Job(std::shared_ptr<JobRecord> record) : record_(std::move(record)) {}

  /// Takes the memory that a job which was only prepared needs, with its pages, which the system
  /// clears: start() would take it, and messages would wait for pages. Given back with the handle
  /// of a job that is never started. Throws Error(usage) when there is too little. Once, before
  /// start().
  void reserve();
  /// Begins a job that was only prepared (Node::prepare). Once. All nodes start the same jobs in
  /// the same order; where they do not, the nodes fail with an Error that says so.
  void start();
  /// Blocks until the job has ended on all nodes; the same result everywhere, `failed` with the
  /// text when a kernel, the program or a visit threw on any node. Once, on a job that was started.
  /// Throws Error when this node or another one fails.
  const JobResult& wait();
  [[nodiscard]] bool done() const;
  /// Ends the job early, on all nodes: tasks that have not begun are skipped. Any node may call it;
  /// all still wait().
  void cancel();
  /// Tasks finished over tasks of this node, 0 to 1.
  [[nodiscard]] double progress() const;
  /// What the job did on this node; complete once it is done.
  [[nodiscard]] const protocol::JobCounters& counters() const { return record().counters; }
  /// Blocks that the job needs at each place of this node at least; their number of tasks here.
  [[nodiscard]] const std::vector<std::int32_t>& blocks_minimum() const {
    return record().blocks_minimum;
  }
  [[nodiscard]] std::int64_t tasks_planned() const { return record().tasks_planned; }
  /// As the trace numbers it; once it is done.
  [[nodiscard]] std::int32_t number() const { return record().id.value(); }

 private:
  [[nodiscard]] JobRecord& record() const;
  std::shared_ptr<JobRecord> record_;  ///< null once moved from
};

/// A task stream for a user's own algorithm: every node inserts the same tasks in the same order.
/// insert() waits for room in the window by itself. Contract, errors: TaskStream.
class UserStream {
 public:
  explicit UserStream(std::shared_ptr<JobRecord> record) : record_(std::move(record)) {}
  UserStream(UserStream&& other) noexcept = default;
  UserStream& operator=(UserStream&&) = delete;
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;
  /// Ends the stream if `end` was not called.
  ~UserStream();

  template <class... Accesses>
  requires(std::is_same_v<Accesses, protocol::Access>&&...) void insert(
      const Kernel& kernel, const TaskOptions& options, const Accesses&... accesses) {
    const std::array<protocol::Access, sizeof...(Accesses)> all{accesses...};
    insert_all(kernel, options, all);
  }
  template <class... Accesses>
  requires(std::is_same_v<Accesses, protocol::Access>&&...) void insert(
      const Kernel& kernel, const Accesses&... accesses) {
    insert(kernel, TaskOptions{}, accesses...);
  }
  /// The same for a number of accesses that is not known when compiling.
  void insert_all(const Kernel& kernel, const TaskOptions& options,
                  std::span<const protocol::Access> accesses);
  /// As TaskStream::release.
  void release(const protocol::Access& access);
  /// No more tasks; the job ends when all are done.
  Job end();

 private:
  [[nodiscard]] JobRecord& record() const;
  std::shared_ptr<JobRecord> record_;  ///< null once ended
};

/// What the node decided from the configuration and the machine; for the plan and the report.
struct NodeFacts {
  std::int32_t rank = 0;
  std::int32_t nodes = 1;
  std::int32_t nodes_on_host = 1;
  std::int32_t cpu_workers = 1;
  std::int32_t cpu_workers_of_all = 1;  ///< nodes together; the same number on all of them
  std::int32_t devices = 0;             ///< of each node
  std::string device_backend;           ///< none, emulated, cuda
  std::string device_reason;
  std::string device_name;  ///< what kind they are: the GPU's name; "emulated"
  std::int32_t device_streams = 2;
  std::uint64_t device_memory_bytes = 0;
  bool moves_tasks = false;  ///< CPU workers may run devices' tasks: runtime.placement is dynamic
  /// They do, as they are worth it: all of devices' tiles have host memory behind them.
  bool lends_tasks = false;
  /// Columns of an inverse block in Cholesky (kernels/kernels.hpp); 0: devices do without.
  std::int64_t inverse_block = 0;
  Distribution distribution;
  std::int32_t window = 0;
  std::string blas;          ///< one line: which kernels and why
  std::string blas_kernels;  ///< OpenBLAS kernel set and tile kernels in use
  std::string machine_file;
  /// From node 0's machine file, of devices only this kind's: what sizes follow from.
  Tuning tuning;
  std::vector<std::string> warnings;
  std::string cpu_model;
  std::uint64_t memory_available_bytes = 0;
  bool oversubscribed = false;
  /// Hardware threads of the host for the threads of all nodes on it.
  std::int32_t host_cores = 0;

  [[nodiscard]] bool has_gpus() const { return device_backend == "cuda"; }
};

/// What a test makes go wrong, or late; what a benchmark pretends.
struct NodeFaults {
  MessageFaults messages;
  FaultPlan devices;  ///< of each emulated device
  /// What kernels take on emulated devices, one at a time, which then compute nothing
  /// (EmulatedOptions::kernel_seconds).
  std::function<double(const Kernel&, const KernelArguments&)> device_seconds;
  /// Set: of all kernels emulated devices run these alone (EmulatedOptions::kernel_is_run).
  std::function<bool(const Kernel&)> device_runs;
  /// What kernels take on CPU workers, which then sleep and compute nothing: what many workers
  /// would do, on a host with few cores (EngineOptions::worker_seconds).
  std::function<double(const Kernel&, const KernelArguments&)> worker_seconds;
  /// Instead of the dynamic policy, where that is configured.
  std::shared_ptr<const PlacementPolicy> placement;
  /// Most blocks of a job's pools beyond the planned minimum; 0 is the least with which a job can
  /// run.
  std::optional<std::int32_t> extra_blocks_max;
  /// Instead of what the host has.
  std::optional<std::uint64_t> host_memory_bytes;
};

/// One node of the cluster: the composition root. Builds topology, devices, memory, protocol,
/// threads and transport from a configuration, and starts them.
///
/// The end of several nodes is stop(), which all call. The destructor of a node that was not
/// stopped, because an exception leaves it or by mistake, waits for nobody: the other nodes fail
/// with an Error that names this one. Matrices, jobs and streams may outlive the node.
///
/// Thread: one thread at a time makes matrices and jobs, in the same order on all nodes; handles
/// may be used by others.
class Node {
 public:
  /// A node on its own.
  explicit Node(const Config& config);
  /// One of the nodes of `communicator`; collective over them. MPI must be initialised with
  /// MPI_THREAD_SERIALIZED or more, and nobody else may call MPI while the node exists. Throws
  /// Error(usage) when the nodes' configurations or numbers of devices differ or the grid does not
  /// have as many nodes.
  Node(const Config& config, MPI_Comm communicator);
  /// With faults injected, for tests.
  Node(const Config& config, const NodeFaults& faults);
  Node(const Config& config, MPI_Comm communicator, const NodeFaults& faults);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] const NodeFacts& facts() const;
  [[nodiscard]] const Config& config() const;

  /// A matrix of `spec.rows` x `spec.columns`; its content is undefined. Throws Error(usage) with
  /// the numbers when the memory does not suffice.
  template <class T>
  [[nodiscard]] Matrix<T> matrix(const MatrixSpec& spec);
  template <class T>
  [[nodiscard]] Matrix<T> matrix(std::int64_t rows, std::int64_t columns) {
    MatrixSpec spec;
    spec.rows = rows;
    spec.columns = columns;
    return matrix<T>(spec);
  }
  /// A matrix in the caller's own memory, which must outlive it: `local` holds this node's tiles
  /// column-major with distance `leading`, tile rows and wide columns of the node packed in order
  /// (the block-cyclic storage that dense libraries use; on one node simply the matrix). Lives on
  /// the host: devices take no part in its tasks.
  [[nodiscard]] Matrix<double> wrap(double* local, std::int64_t leading, MatrixSpec spec);
  /// The layout that `matrix` uses for an m x n matrix when none is given.
  [[nodiscard]] TileLayout default_layout(std::int64_t rows, std::int64_t columns) const;

  /// Starts a job and returns at once; several may be in flight. Jobs that share a matrix take
  /// effect in the order of submission. Throws Error(usage) when there is too little memory for its
  /// copies; one of several nodes has failed then, since others may have begun the job. What the
  /// program throws when it is planned comes out of submit() as it is.
  Job submit(JobSpec spec);
  /// Plans a job (its program is walked once) without starting it: for a plan to look at, or to
  /// time the run alone (Job::reserve).
  Job prepare(JobSpec spec);
  /// A stream of tasks on `matrices`, which must be all that the tasks access.
  UserStream stream(std::string name, const std::vector<Matrix<double>>& matrices);

  /// `tell` is called by who waits for a job when tasks run on this node and none has ended for
  /// runtime.watchdog_seconds, and again after as long, with what is known of them: whether a
  /// kernel takes long or never ends, only a person can say. Nobody may be waiting; an empty one
  /// ends it.
  void on_quiet(std::function<void(const std::string&)> tell);

  /// The program's own messages between nodes (messages.hpp). Thread: any.
  [[nodiscard]] heddle::messages::Endpoint messages();

  /// Element-wise over all nodes, in place: the same bits on all of them; not a number where any
  /// node's value is none. Same order on all nodes.
  void all_reduce(std::span<double> values, Reduction reduction);
  void barrier();

  /// What this node's threads have done so far.
  [[nodiscard]] std::vector<ThreadReport> threads() const;
  [[nodiscard]] Engine& engine();
  [[nodiscard]] trace::Recorder& recorder();
  /// Binds the calling thread to the cores that this node's workers leave, where they leave enough
  /// for the node's other threads; otherwise to the node's share of the host, or not at all. For
  /// threads that a program has beside the node's: where the system refuses they stay where they
  /// were, and may disturb a worker. Any thread.
  void bind_beside_workers() const noexcept;
  [[nodiscard]] TileStore& store();
  /// How this node's clock compared with node 0's at start-up.
  [[nodiscard]] trace::ClockOffset clock_offset() const;
  /// How it compares now, so that clocks that drift apart can be followed. Collective.
  [[nodiscard]] trace::ClockOffset compare_clocks();
  /// With runtime.messages.explain: how the messages came that this node has received, a text for
  /// each kind.
  [[nodiscard]] std::vector<std::string> explained_messages() const;
  /// Ends all threads, so that their records can be read, when all nodes have called it; nothing
  /// may be submitted afterwards. Does nothing the second time. Where this node or another one has
  /// failed it waits for nobody. Collective.
  void stop();
  /// This node has failed, or heard that another one has: every call that waits throws the reason.
  [[nodiscard]] bool failed() const;

 private:
  struct Parts;
  [[nodiscard]] Matrix<double> make(const MatrixSpec& wanted, double* wrapped,
                                    std::int64_t leading);
  std::unique_ptr<Parts> parts_;
};

template <>
Matrix<double> Node::matrix<double>(const MatrixSpec& spec);

}  // namespace heddle
