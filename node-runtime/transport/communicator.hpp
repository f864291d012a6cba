#pragma once

#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace heddle {

/// The nodes of a run. Made once at start-up by the thread that calls MPI then; afterwards only the
/// progress thread uses the communicators.
class Communicator {
 public:
  /// One node, no MPI.
  Communicator() = default;
  /// Duplicates `parent` for headers and for start-up. Collective over its nodes. Needs
  /// MPI_THREAD_SERIALIZED; throws Error(usage) if MPI was initialised with less.
  explicit Communicator(MPI_Comm parent);
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&&) = delete;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Collective, like the constructor, unless `abandon` was called.
  ~Communicator();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Nodes on this host, and this node's number among them.
  [[nodiscard]] int local_rank() const { return local_rank_; }
  [[nodiscard]] int local_size() const { return local_size_; }
  [[nodiscard]] MPI_Comm headers() const { return headers_; }
  /// Process ids of the nodes that run on this host, by rank; 0 for the others.
  [[nodiscard]] const std::vector<std::int32_t>& local_processes() const {
    return local_processes_;
  }
  /// Host names by rank.
  [[nodiscard]] const std::vector<std::string>& hosts() const { return hosts_; }

  /// After a failure: no collective call any more, not even in the destructor.
  void abandon() { abandoned_ = true; }

  // Collective calls for start-up, before the progress thread runs.
  /// `values` of all nodes, by rank; equal counts on all nodes.
  [[nodiscard]] std::vector<std::uint64_t> all_gather(std::span<const std::uint64_t> values) const;
  [[nodiscard]] std::vector<std::uint64_t> all_gather(std::uint64_t value) const {
    return all_gather(std::span(&value, 1));
  }
  /// The text of node 0.
  [[nodiscard]] std::string broadcast(const std::string& text) const;
  /// Throws on all nodes when any node has an error: the lowest such node's, with its number. An
  /// error that all nodes have in the same words is thrown as it is.
  void throw_together(const std::optional<Error>& mine) const;
  /// node 0's CLOCK_MONOTONIC minus this node's, in ns; measured by the fastest of some exchanges.
  [[nodiscard]] std::int64_t clock_offset_ns() const;
  /// The texts of all nodes by rank on node 0; empty on the others.
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine) const;
  /// Returns when all nodes have called it. Yields the core while it waits.
  void wait_for_all(double seconds_max) const;

  // Between two nodes, before the progress thread runs; the core is given to others while a call
  // lasts long. Each throws Error(communication) when the other node does not do its part within
  // `seconds_max`: the process must end then, for MPI still has the memory.
  void send(int to, std::span<const std::byte> bytes, double seconds_max) const;
  /// Receives exactly the bytes that the other node sends.
  void receive(int from, std::span<std::byte> bytes, double seconds_max) const;
  /// Exchanges a text with the other node.
  [[nodiscard]] std::string exchange(int other, const std::string& mine, double seconds_max) const;

 private:
  void finish(std::span<MPI_Request> requests, double seconds_max, const std::string& who) const;

  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  bool abandoned_ = false;
  MPI_Comm headers_ = MPI_COMM_NULL;
  MPI_Comm collectives_ = MPI_COMM_NULL;
  std::vector<std::int32_t> local_processes_;
  std::vector<std::string> hosts_;
};

/// Throws Error(communication) that names the operation when an MPI call failed.
void check_mpi(int status, const char* operation);

// MPI's blocking calls spin: with more nodes than cores each takes milliseconds. The functions
// below yield the core, and are for start-up. Thread: any that may call MPI.
/// Returns when `request` has completed.
void complete(MPI_Request request, const char* operation);
/// The bytes of each node of the communicator, by rank; equal counts on all nodes.
void all_gather(std::span<const std::byte> mine, std::span<std::byte> all, MPI_Comm communicator,
                const char* operation);
/// A communicator of the same nodes. Collective over them.
[[nodiscard]] MPI_Comm duplicate(MPI_Comm communicator);

}  // namespace heddle
