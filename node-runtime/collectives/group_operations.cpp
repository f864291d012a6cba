/// The operations of Group.

#include "node-runtime/collectives/group.hpp"
#include "node-runtime/collectives/group_calls.hpp"
#include "node-runtime/collectives/group_core.hpp"

namespace heddle {

using collectives::all_gather_call;
using collectives::all_gather_in_place_call;
using collectives::all_gather_list_call;
using collectives::all_reduce_call;
using collectives::all_reduce_in_place_call;
using collectives::all_to_all_call;
using collectives::all_to_all_list_call;
using collectives::barrier_call;
using collectives::broadcast_call;
using collectives::exclusive_scan_call;
using collectives::gather_call;
using collectives::gather_list_call;
using collectives::reduce_call;
using collectives::reduce_scatter_call;
using collectives::reduce_scatter_counts_call;
using collectives::scan_call;
using collectives::scan_in_place_call;
using collectives::scatter_call;
using collectives::scatter_list_call;

void Group::barrier(const CollectiveOptions& options) const {
  core().run(barrier_call(options));
}
Collective Group::begin_barrier(const CollectiveOptions& options) const {
  return begin(barrier_call(options));
}
void Group::barrier(Stream& stream, const CollectiveOptions& options) const {
  begin_on(barrier_call(options), stream);
}

void Group::broadcast(const Incoming& elements, int root, const CollectiveOptions& options) const {
  core().run(broadcast_call(rank(), elements, root, options));
}
Collective Group::begin_broadcast(const Incoming& elements, int root,
                                  const CollectiveOptions& options) const {
  return begin(broadcast_call(rank(), elements, root, options));
}
void Group::broadcast(Stream& stream, const Incoming& elements, int root,
                      const CollectiveOptions& options) const {
  begin_on(broadcast_call(rank(), elements, root, options), stream);
}

void Group::scatter(const Outgoing& from, const Incoming& to, int root,
                    const CollectiveOptions& options) const {
  core().run(scatter_call(rank(), from, to, root, options));
}
Collective Group::begin_scatter(const Outgoing& from, const Incoming& to, int root,
                                const CollectiveOptions& options) const {
  return begin(scatter_call(rank(), from, to, root, options));
}
void Group::scatter(Stream& stream, const Outgoing& from, const Incoming& to, int root,
                    const CollectiveOptions& options) const {
  begin_on(scatter_call(rank(), from, to, root, options), stream);
}

void Group::scatter(std::span<const Outgoing> from, const Incoming& to, int root,
                    const CollectiveOptions& options) const {
  core().run(scatter_list_call(rank(), from, to, root, options));
}
Collective Group::begin_scatter(std::span<const Outgoing> from, const Incoming& to, int root,
                                const CollectiveOptions& options) const {
  return begin(scatter_list_call(rank(), from, to, root, options));
}
void Group::scatter(Stream& stream, std::span<const Outgoing> from, const Incoming& to, int root,
                    const CollectiveOptions& options) const {
  begin_on(scatter_list_call(rank(), from, to, root, options), stream);
}

void Group::gather(const Outgoing& from, const Incoming& to, int root,
                   const CollectiveOptions& options) const {
  core().run(gather_call(rank(), from, to, root, options));
}
Collective Group::begin_gather(const Outgoing& from, const Incoming& to, int root,
                               const CollectiveOptions& options) const {
  return begin(gather_call(rank(), from, to, root, options));
}
void Group::gather(Stream& stream, const Outgoing& from, const Incoming& to, int root,
                   const CollectiveOptions& options) const {
  begin_on(gather_call(rank(), from, to, root, options), stream);
}

void Group::gather(const Outgoing& from, std::span<const Incoming> to, int root,
                   const CollectiveOptions& options) const {
  core().run(gather_list_call(rank(), from, to, root, options));
}
Collective Group::begin_gather(const Outgoing& from, std::span<const Incoming> to, int root,
                               const CollectiveOptions& options) const {
  return begin(gather_list_call(rank(), from, to, root, options));
}
void Group::gather(Stream& stream, const Outgoing& from, std::span<const Incoming> to, int root,
                   const CollectiveOptions& options) const {
  begin_on(gather_list_call(rank(), from, to, root, options), stream);
}

void Group::all_gather(const Outgoing& from, const Incoming& to,
                       const CollectiveOptions& options) const {
  core().run(all_gather_call(from, to, options));
}
Collective Group::begin_all_gather(const Outgoing& from, const Incoming& to,
                                   const CollectiveOptions& options) const {
  return begin(all_gather_call(from, to, options));
}
void Group::all_gather(Stream& stream, const Outgoing& from, const Incoming& to,
                       const CollectiveOptions& options) const {
  begin_on(all_gather_call(from, to, options), stream);
}

void Group::all_gather(const Incoming& all, const CollectiveOptions& options) const {
  core().run(all_gather_in_place_call(all, options));
}
Collective Group::begin_all_gather(const Incoming& all, const CollectiveOptions& options) const {
  return begin(all_gather_in_place_call(all, options));
}
void Group::all_gather(Stream& stream, const Incoming& all,
                       const CollectiveOptions& options) const {
  begin_on(all_gather_in_place_call(all, options), stream);
}

void Group::all_gather(const Outgoing& from, std::span<const Incoming> to,
                       const CollectiveOptions& options) const {
  core().run(all_gather_list_call(from, to, options));
}
Collective Group::begin_all_gather(const Outgoing& from, std::span<const Incoming> to,
                                   const CollectiveOptions& options) const {
  return begin(all_gather_list_call(from, to, options));
}
void Group::all_gather(Stream& stream, const Outgoing& from, std::span<const Incoming> to,
                       const CollectiveOptions& options) const {
  begin_on(all_gather_list_call(from, to, options), stream);
}

void Group::all_to_all(const Outgoing& from, const Incoming& to,
                       const CollectiveOptions& options) const {
  core().run(all_to_all_call(from, to, options));
}
Collective Group::begin_all_to_all(const Outgoing& from, const Incoming& to,
                                   const CollectiveOptions& options) const {
  return begin(all_to_all_call(from, to, options));
}
void Group::all_to_all(Stream& stream, const Outgoing& from, const Incoming& to,
                       const CollectiveOptions& options) const {
  begin_on(all_to_all_call(from, to, options), stream);
}

void Group::all_to_all(std::span<const Outgoing> from, std::span<const Incoming> to,
                       const CollectiveOptions& options) const {
  core().run(all_to_all_list_call(from, to, options));
}
Collective Group::begin_all_to_all(std::span<const Outgoing> from, std::span<const Incoming> to,
                                   const CollectiveOptions& options) const {
  return begin(all_to_all_list_call(from, to, options));
}
void Group::all_to_all(Stream& stream, std::span<const Outgoing> from, std::span<const Incoming> to,
                       const CollectiveOptions& options) const {
  begin_on(all_to_all_list_call(from, to, options), stream);
}

void Group::reduce(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                   int root, const CollectiveOptions& options) const {
  core().run(reduce_call(rank(), from, to, operation, root, options));
}
Collective Group::begin_reduce(const Outgoing& from, const Incoming& to,
                               const ReduceOperation& operation, int root,
                               const CollectiveOptions& options) const {
  return begin(reduce_call(rank(), from, to, operation, root, options));
}
void Group::reduce(Stream& stream, const Outgoing& from, const Incoming& to,
                   const ReduceOperation& operation, int root,
                   const CollectiveOptions& options) const {
  begin_on(reduce_call(rank(), from, to, operation, root, options), stream);
}

void Group::all_reduce(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                       const CollectiveOptions& options) const {
  core().run(all_reduce_call(from, to, operation, options));
}
Collective Group::begin_all_reduce(const Outgoing& from, const Incoming& to,
                                   const ReduceOperation& operation,
                                   const CollectiveOptions& options) const {
  return begin(all_reduce_call(from, to, operation, options));
}
void Group::all_reduce(Stream& stream, const Outgoing& from, const Incoming& to,
                       const ReduceOperation& operation, const CollectiveOptions& options) const {
  begin_on(all_reduce_call(from, to, operation, options), stream);
}

void Group::all_reduce(const Incoming& all, const ReduceOperation& operation,
                       const CollectiveOptions& options) const {
  core().run(all_reduce_in_place_call(all, operation, options));
}
Collective Group::begin_all_reduce(const Incoming& all, const ReduceOperation& operation,
                                   const CollectiveOptions& options) const {
  return begin(all_reduce_in_place_call(all, operation, options));
}
void Group::all_reduce(Stream& stream, const Incoming& all, const ReduceOperation& operation,
                       const CollectiveOptions& options) const {
  begin_on(all_reduce_in_place_call(all, operation, options), stream);
}

void Group::reduce_scatter(const Outgoing& from, const Incoming& to,
                           const ReduceOperation& operation,
                           const CollectiveOptions& options) const {
  core().run(reduce_scatter_call(from, to, operation, options));
}
Collective Group::begin_reduce_scatter(const Outgoing& from, const Incoming& to,
                                       const ReduceOperation& operation,
                                       const CollectiveOptions& options) const {
  return begin(reduce_scatter_call(from, to, operation, options));
}
void Group::reduce_scatter(Stream& stream, const Outgoing& from, const Incoming& to,
                           const ReduceOperation& operation,
                           const CollectiveOptions& options) const {
  begin_on(reduce_scatter_call(from, to, operation, options), stream);
}

void Group::reduce_scatter(const Outgoing& from, const Incoming& to,
                           std::span<const std::int64_t> counts, const ReduceOperation& operation,
                           const CollectiveOptions& options) const {
  core().run(reduce_scatter_counts_call(from, to, counts, operation, options));
}
Collective Group::begin_reduce_scatter(const Outgoing& from, const Incoming& to,
                                       std::span<const std::int64_t> counts,
                                       const ReduceOperation& operation,
                                       const CollectiveOptions& options) const {
  return begin(reduce_scatter_counts_call(from, to, counts, operation, options));
}
void Group::reduce_scatter(Stream& stream, const Outgoing& from, const Incoming& to,
                           std::span<const std::int64_t> counts, const ReduceOperation& operation,
                           const CollectiveOptions& options) const {
  begin_on(reduce_scatter_counts_call(from, to, counts, operation, options), stream);
}

void Group::scan(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                 const CollectiveOptions& options) const {
  core().run(scan_call(from, to, operation, options));
}
Collective Group::begin_scan(const Outgoing& from, const Incoming& to,
                             const ReduceOperation& operation,
                             const CollectiveOptions& options) const {
  return begin(scan_call(from, to, operation, options));
}
void Group::scan(Stream& stream, const Outgoing& from, const Incoming& to,
                 const ReduceOperation& operation, const CollectiveOptions& options) const {
  begin_on(scan_call(from, to, operation, options), stream);
}

void Group::scan(const Incoming& all, const ReduceOperation& operation,
                 const CollectiveOptions& options) const {
  core().run(scan_in_place_call(all, operation, options));
}
Collective Group::begin_scan(const Incoming& all, const ReduceOperation& operation,
                             const CollectiveOptions& options) const {
  return begin(scan_in_place_call(all, operation, options));
}
void Group::scan(Stream& stream, const Incoming& all, const ReduceOperation& operation,
                 const CollectiveOptions& options) const {
  begin_on(scan_in_place_call(all, operation, options), stream);
}

void Group::exclusive_scan(const Outgoing& from, const Incoming& to,
                           const ReduceOperation& operation,
                           const CollectiveOptions& options) const {
  core().run(exclusive_scan_call(from, to, operation, options));
}
Collective Group::begin_exclusive_scan(const Outgoing& from, const Incoming& to,
                                       const ReduceOperation& operation,
                                       const CollectiveOptions& options) const {
  return begin(exclusive_scan_call(from, to, operation, options));
}
void Group::exclusive_scan(Stream& stream, const Outgoing& from, const Incoming& to,
                           const ReduceOperation& operation,
                           const CollectiveOptions& options) const {
  begin_on(exclusive_scan_call(from, to, operation, options), stream);
}

}  // namespace heddle
