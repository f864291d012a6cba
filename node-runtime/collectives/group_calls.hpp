#pragma once

#include <cstdint>
#include <span>

#include "node-runtime/collectives/call/call.hpp"

/// The calls of Group's functions, on rank `own` where that matters.
namespace heddle::collectives {

[[nodiscard]] Call barrier_call(const CollectiveOptions& options);
[[nodiscard]] Call broadcast_call(int own, const Incoming& elements, int root,
                                  const CollectiveOptions& options);
[[nodiscard]] Call scatter_call(int own, const Outgoing& from, const Incoming& to, int root,
                                const CollectiveOptions& options);
[[nodiscard]] Call scatter_list_call(int own, std::span<const Outgoing> from, const Incoming& to,
                                     int root, const CollectiveOptions& options);
[[nodiscard]] Call gather_call(int own, const Outgoing& from, const Incoming& to, int root,
                               const CollectiveOptions& options);
[[nodiscard]] Call gather_list_call(int own, const Outgoing& from, std::span<const Incoming> to,
                                    int root, const CollectiveOptions& options);
[[nodiscard]] Call all_gather_call(const Outgoing& from, const Incoming& to,
                                   const CollectiveOptions& options);
[[nodiscard]] Call all_gather_in_place_call(const Incoming& all, const CollectiveOptions& options);
[[nodiscard]] Call all_gather_list_call(const Outgoing& from, std::span<const Incoming> to,
                                        const CollectiveOptions& options);
[[nodiscard]] Call all_to_all_call(const Outgoing& from, const Incoming& to,
                                   const CollectiveOptions& options);
[[nodiscard]] Call all_to_all_list_call(std::span<const Outgoing> from,
                                        std::span<const Incoming> to,
                                        const CollectiveOptions& options);
[[nodiscard]] Call reduce_call(int own, const Outgoing& from, const Incoming& to,
                               const ReduceOperation& operation, int root,
                               const CollectiveOptions& options);
[[nodiscard]] Call all_reduce_call(const Outgoing& from, const Incoming& to,
                                   const ReduceOperation& operation,
                                   const CollectiveOptions& options);
[[nodiscard]] Call all_reduce_in_place_call(const Incoming& all, const ReduceOperation& operation,
                                            const CollectiveOptions& options);
[[nodiscard]] Call reduce_scatter_call(const Outgoing& from, const Incoming& to,
                                       const ReduceOperation& operation,
                                       const CollectiveOptions& options);
[[nodiscard]] Call reduce_scatter_counts_call(const Outgoing& from, const Incoming& to,
                                              std::span<const std::int64_t> counts,
                                              const ReduceOperation& operation,
                                              const CollectiveOptions& options);
[[nodiscard]] Call scan_call(const Outgoing& from, const Incoming& to,
                             const ReduceOperation& operation, const CollectiveOptions& options);
[[nodiscard]] Call scan_in_place_call(const Incoming& all, const ReduceOperation& operation,
                                      const CollectiveOptions& options);
[[nodiscard]] Call exclusive_scan_call(const Outgoing& from, const Incoming& to,
                                       const ReduceOperation& operation,
                                       const CollectiveOptions& options);

}  // namespace heddle::collectives
