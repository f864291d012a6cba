#pragma once

#include <cstdint>
#include <mpi.h>
#include <string>

#include "node-runtime/collectives/group.hpp"

/// Collectives by their names: heddle's in each of their forms, and MPI's.
namespace heddle {

/// A call of an operation of collective_names. Sums, and rank 0 is the root.
struct CollectiveCall {
  std::string operation;
  Outgoing in{};  ///< not in place
  Incoming out{};
  bool is_in_place = false;  ///< only where has_in_place()
  CollectiveOptions options{};
};

/// Whether `operation` has a form with one buffer beside the one with two.
[[nodiscard]] bool has_in_place(const std::string& operation);

/// Blocks until this rank's part is over. With a stream, the operation is one of the stream, which
/// is waited for.
void run_collective(const Group& group, const CollectiveCall& call, Stream* stream = nullptr);

[[nodiscard]] Collective begin_collective(const Group& group, const CollectiveCall& call);

/// MPI's, of `count` doubles of a block, with all processes. Returns what MPI returns.
[[nodiscard]] int run_mpi_collective(const std::string& operation, const double* in, double* out,
                                     int count);

/// Doubles of its input and of its output that rank `rank` has in an operation; of `count` each
/// block has.
struct CollectiveExtents {
  std::int64_t in = 0;
  std::int64_t out = 0;
};
[[nodiscard]] CollectiveExtents collective_extents(const std::string& operation, int rank, int size,
                                                   std::int64_t count);

}  // namespace heddle
