#pragma once

#include "layout/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "config/config.hpp"
#include "node-runtime/matrix.hpp"
#include "node-runtime/tasks.hpp"
#include "node-runtime/transport/reduction.hpp"

namespace heddle {

class Device;
class Group;
struct JobRecord;
struct NodeFacts;
struct NodeFaults;

namespace messages {
class Endpoint;
}

/// A submitted job. A handle: the job goes on when it is dropped, and the handle may outlive the
/// node. Then, and where a call comes out of order, functions throw Error(usage).
class Job {
 public:
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

 private:
  friend class JobInternals;
  friend class Node;
  friend class UserStream;
  explicit Job(std::shared_ptr<JobRecord> record) : record_(std::move(record)) {}
  [[nodiscard]] JobRecord& record() const;

  std::shared_ptr<JobRecord> record_;  ///< null once moved from
};

/// A task stream for a user's own algorithm: every node inserts the same tasks in the same order.
class UserStream {
 public:
  UserStream(UserStream&& other) noexcept = default;
  UserStream& operator=(UserStream&&) = delete;
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;
  /// Ends the stream if `end` was not called.
  ~UserStream();

  /// The next task: `kernel` on `accesses`, the main output first. Waits for room in the window by
  /// itself. Throws Error(usage) as TaskStream::insert does.
  void insert(const Kernel& kernel, const AccessList& accesses, const TaskOptions& options = {});
  /// No later task reads this version of the tile, other than where it lives: copies of it are
  /// given up.
  void release(const protocol::Access& access);
  /// No more tasks; the job ends when all are done.
  Job end();

 private:
  friend class Node;
  explicit UserStream(std::shared_ptr<JobRecord> record) : record_(std::move(record)) {}
  [[nodiscard]] JobRecord& record() const;

  std::shared_ptr<JobRecord> record_;  ///< null once ended
};

/// One node of the cluster, made from a configuration.
///
/// The end of several nodes is stop(), which all call. The destructor of a node that was not
/// stopped, because an exception leaves it or by mistake, waits for nobody: the other nodes fail
/// with an Error that names this one. Matrices, jobs and streams may outlive the node.
///
/// Thread: one thread at a time makes matrices and jobs, in the same order on all nodes; handles
/// may be used by others.
class Node {
 public:
  /// A node on its own. `faults`: for tests.
  explicit Node(const Config& config);
  Node(const Config& config, const NodeFaults& faults);
  /// One of the nodes of `communicator`, an MPI_Comm; collective over them. MPI must be initialised
  /// with MPI_THREAD_SERIALIZED or more, and nobody else may call MPI while the node exists. Throws
  /// Error(usage) when the nodes' configurations or numbers of devices differ or the grid does not
  /// have as many nodes.
  template <class Communicator>
  requires(std::is_same_v<Communicator, int> || std::is_pointer_v<Communicator>)
      Node(const Config& config, Communicator communicator, const NodeFaults* faults = nullptr)
      : Node(config, Handle{&communicator, sizeof communicator}, faults) {}
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// Devices of this node; all nodes have the same number.
  [[nodiscard]] int cpu_workers() const;
  [[nodiscard]] int devices() const;
  /// One of them, for a program's own memory and streams; they end before the node does. Throws
  /// Error(usage) for one that is not there.
  [[nodiscard]] Device& device(int number) const;
  /// All that the node decided (node_facts.hpp).
  [[nodiscard]] const NodeFacts& facts() const;
  [[nodiscard]] const Config& config() const;

  /// A matrix; its content is undefined. Throws Error(usage) with the numbers when the memory does
  /// not suffice, and when the spec makes no sense.
  template <class T>
  [[nodiscard]] Matrix<T> matrix(const MatrixSpec& spec) {
    static_assert(std::is_same_v<T, double>, "heddle's matrices have elements of type double");
    return make(spec);
  }
  template <class T>
  [[nodiscard]] Matrix<T> matrix(std::int64_t rows, std::int64_t columns,
                                 Storage storage = Storage::full) {
    return matrix<T>(MatrixSpec(rows, columns, storage));
  }
  /// A matrix in the caller's own memory, which must outlive it: `local` holds this node's part as
  /// Matrix::copy_to lays it out. Lives on the host: devices take no part in its tasks.
  [[nodiscard]] Matrix<double> wrap(double* local, std::int64_t leading, const MatrixSpec& spec);
  /// The layout that `matrix` uses for an m x n matrix when none is given.
  [[nodiscard]] TileLayout default_layout(std::int64_t rows, std::int64_t columns) const;
  /// The nodes and devices that such a matrix is dealt out to.
  [[nodiscard]] Distribution default_distribution(std::int64_t rows, std::int64_t columns) const;

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

  /// The thread that waits for a job calls `tell` with what is known of this node's tasks when none
  /// has ended for runtime.watchdog_seconds, and again after as long. Set it while no thread waits.
  void on_quiet(std::function<void(const std::string&)> tell);

  /// All nodes, which act together on memory (collectives/group.hpp). The first call is collective
  /// in order; all calls give the same group.
  [[nodiscard]] Group group();
  /// The program's own messages between nodes (messages.hpp). Thread: any.
  [[nodiscard]] heddle::messages::Endpoint messages();

  /// Element-wise over all nodes, in place: the same bits on all of them, and for as many nodes in
  /// every run; not a number where any node's value is none. Same order on all nodes, one thread at
  /// a time. Throws Error(usage) when nodes call different ones or give different numbers of
  /// values, on all of them; later calls throw the same.
  void all_reduce(std::span<double> values, Reduction reduction);
  void barrier();

  /// Waits for the jobs in flight, those whose handles are gone too, and ends all threads when all
  /// nodes have called it; nothing may be submitted afterwards. Does nothing the second time. Where
  /// this node or another one has failed it waits for nobody. Throws Error(usage) when a UserStream
  /// has not ended; the node goes on. Collective.
  void stop();
  /// This node has failed, or heard that another one has: every call that waits throws the reason.
  [[nodiscard]] bool failed() const;

 private:
  friend class NodeInternals;
  struct Parts;
  /// An MPI_Comm, whose type is MPI's own: where it is and its size.
  struct Handle {
    const void* value;
    std::size_t bytes;
  };
  Node(const Config& config, Handle communicator, const NodeFaults* faults);
  /// With what the node's configuration says of tiles and their distribution.
  [[nodiscard]] MatrixSpec with_layout(const MatrixSpec& spec) const;
  [[nodiscard]] Matrix<double> make(const MatrixSpec& wanted);
  [[nodiscard]] Matrix<double> build(const MatrixSpec& wanted, double* wrapped,
                                     std::int64_t leading);

  std::unique_ptr<Parts> parts_;
};

}  // namespace heddle
