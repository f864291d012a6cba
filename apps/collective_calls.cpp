#include "apps/collective_calls.hpp"

#include "node-runtime/device/device.hpp"

namespace heddle {
namespace {

/// `first`: nothing, or a stream.
template <class... First>
void call_group(const Group& group, const CollectiveCall& c, First&... first) {
  const ReduceOperation sum = ReduceOperation::sum();
  const std::string& o = c.operation;
  if (o == "barrier") return group.barrier(first..., c.options);
  if (o == "broadcast") return group.broadcast(first..., c.out, 0, c.options);
  if (o == "scatter") return group.scatter(first..., c.in, c.out, 0, c.options);
  if (o == "gather") return group.gather(first..., c.in, c.out, 0, c.options);
  if (o == "reduce") return group.reduce(first..., c.in, c.out, sum, 0, c.options);
  if (o == "reduce_scatter") return group.reduce_scatter(first..., c.in, c.out, sum, c.options);
  if (o == "all_to_all") return group.all_to_all(first..., c.in, c.out, c.options);
  if (c.is_in_place) {
    if (o == "all_gather") return group.all_gather(first..., c.out, c.options);
    if (o == "all_reduce") return group.all_reduce(first..., c.out, sum, c.options);
    return group.scan(first..., c.out, sum, c.options);
  }
  if (o == "all_gather") return group.all_gather(first..., c.in, c.out, c.options);
  if (o == "all_reduce") return group.all_reduce(first..., c.in, c.out, sum, c.options);
  group.scan(first..., c.in, c.out, sum, c.options);
}

}  // namespace

bool has_in_place(const std::string& operation) {
  return operation == "all_gather" || operation == "all_reduce" || operation == "scan";
}

void run_collective(const Group& group, const CollectiveCall& call, Stream* stream) {
  if (stream == nullptr) return call_group(group, call);
  call_group(group, call, *stream);
  stream->synchronize();
}

Collective begin_collective(const Group& group, const CollectiveCall& c) {
  const ReduceOperation sum = ReduceOperation::sum();
  const std::string& o = c.operation;
  if (o == "barrier") return group.begin_barrier(c.options);
  if (o == "broadcast") return group.begin_broadcast(c.out, 0, c.options);
  if (o == "scatter") return group.begin_scatter(c.in, c.out, 0, c.options);
  if (o == "gather") return group.begin_gather(c.in, c.out, 0, c.options);
  if (o == "reduce") return group.begin_reduce(c.in, c.out, sum, 0, c.options);
  if (o == "reduce_scatter") return group.begin_reduce_scatter(c.in, c.out, sum, c.options);
  if (o == "all_to_all") return group.begin_all_to_all(c.in, c.out, c.options);
  if (c.is_in_place) {
    if (o == "all_gather") return group.begin_all_gather(c.out, c.options);
    if (o == "all_reduce") return group.begin_all_reduce(c.out, sum, c.options);
    return group.begin_scan(c.out, sum, c.options);
  }
  if (o == "all_gather") return group.begin_all_gather(c.in, c.out, c.options);
  if (o == "all_reduce") return group.begin_all_reduce(c.in, c.out, sum, c.options);
  return group.begin_scan(c.in, c.out, sum, c.options);
}

int run_mpi_collective(const std::string& operation, const double* in, double* out, int count) {
  const MPI_Comm all = MPI_COMM_WORLD;
  const MPI_Datatype type = MPI_DOUBLE;
  const int n = count;
  const std::string& o = operation;
  if (o == "barrier") return MPI_Barrier(all);
  if (o == "broadcast") return MPI_Bcast(out, n, type, 0, all);
  if (o == "scatter") return MPI_Scatter(in, n, type, out, n, type, 0, all);
  if (o == "gather") return MPI_Gather(in, n, type, out, n, type, 0, all);
  if (o == "all_gather") return MPI_Allgather(in, n, type, out, n, type, all);
  if (o == "reduce") return MPI_Reduce(in, out, n, type, MPI_SUM, 0, all);
  if (o == "all_reduce") return MPI_Allreduce(in, out, n, type, MPI_SUM, all);
  if (o == "reduce_scatter") return MPI_Reduce_scatter_block(in, out, n, type, MPI_SUM, all);
  if (o == "all_to_all") return MPI_Alltoall(in, n, type, out, n, type, all);
  return MPI_Scan(in, out, n, type, MPI_SUM, all);
}

CollectiveExtents collective_extents(const std::string& operation, int rank, int size,
                                     std::int64_t count) {
  const std::int64_t all = count * size;
  const bool is_root = rank == 0;
  const std::string& o = operation;
  if (o == "barrier") return {};
  if (o == "broadcast") return is_root ? CollectiveExtents{count, 0} : CollectiveExtents{0, count};
  if (o == "scatter") return {is_root ? all : 0, count};
  if (o == "gather") return {count, is_root ? all : 0};
  if (o == "reduce") return {count, is_root ? count : 0};
  if (o == "all_gather") return {count, all};
  if (o == "reduce_scatter") return {all, count};
  if (o == "all_to_all") return {all, all};
  return {count, count};
}

}  // namespace heddle
