#include "node-runtime/collectives/group_calls.hpp"

#include <utility>
#include <vector>

#include "base/require.hpp"

namespace heddle::collectives {
namespace {

std::vector<Elements> all_of(const auto& list) {
  return {list.begin(), list.end()};
}

/// Moves elements: one buffer of each side.
Call moving(CollectiveKind kind, std::vector<Elements> inputs, std::vector<Elements> outputs,
            int root, const CollectiveOptions& options) {
  Call call;
  call.kind = kind;
  call.root = root;
  call.inputs = std::move(inputs);
  call.outputs = std::move(outputs);
  call.options = options;
  return call;
}

Call listed(Call call) {
  call.is_listed = true;
  return call;
}

Call in_place(Call call) {
  call.is_in_place = true;
  return call;
}

Call reducing(Call call, const ReduceOperation& operation) {
  call.operation = operation;
  return call;
}

}  // namespace

Call barrier_call(const CollectiveOptions& options) {
  return moving(CollectiveKind::barrier, {}, {}, 0, options);
}

Call broadcast_call(int own, const Incoming& elements, int root, const CollectiveOptions& options) {
  std::vector<Elements> all{elements};
  return own == root ? moving(CollectiveKind::broadcast, std::move(all), {}, root, options)
                     : moving(CollectiveKind::broadcast, {}, std::move(all), root, options);
}

Call scatter_call(int own, const Outgoing& from, const Incoming& to, int root,
                  const CollectiveOptions& options) {
  std::vector<Elements> inputs;
  if (own == root) inputs.emplace_back(from);
  return moving(CollectiveKind::scatter, std::move(inputs), {to}, root, options);
}

Call scatter_list_call(int own, std::span<const Outgoing> from, const Incoming& to, int root,
                       const CollectiveOptions& options) {
  std::vector<Elements> inputs;
  if (own == root) inputs = all_of(from);
  return listed(moving(CollectiveKind::scatter, std::move(inputs), {to}, root, options));
}

Call gather_call(int own, const Outgoing& from, const Incoming& to, int root,
                 const CollectiveOptions& options) {
  std::vector<Elements> outputs;
  if (own == root) outputs.emplace_back(to);
  return moving(CollectiveKind::gather, {from}, std::move(outputs), root, options);
}

Call gather_list_call(int own, const Outgoing& from, std::span<const Incoming> to, int root,
                      const CollectiveOptions& options) {
  std::vector<Elements> outputs;
  if (own == root) outputs = all_of(to);
  return listed(moving(CollectiveKind::gather, {from}, std::move(outputs), root, options));
}

Call all_gather_call(const Outgoing& from, const Incoming& to, const CollectiveOptions& options) {
  return moving(CollectiveKind::all_gather, {from}, {to}, 0, options);
}

Call all_gather_in_place_call(const Incoming& all, const CollectiveOptions& options) {
  return in_place(moving(CollectiveKind::all_gather, {}, {all}, 0, options));
}

Call all_gather_list_call(const Outgoing& from, std::span<const Incoming> to,
                          const CollectiveOptions& options) {
  return listed(moving(CollectiveKind::all_gather, {from}, all_of(to), 0, options));
}

Call all_to_all_call(const Outgoing& from, const Incoming& to, const CollectiveOptions& options) {
  return moving(CollectiveKind::all_to_all, {from}, {to}, 0, options);
}

Call all_to_all_list_call(std::span<const Outgoing> from, std::span<const Incoming> to,
                          const CollectiveOptions& options) {
  return listed(moving(CollectiveKind::all_to_all, all_of(from), all_of(to), 0, options));
}

Call reduce_call(int own, const Outgoing& from, const Incoming& to,
                 const ReduceOperation& operation, int root, const CollectiveOptions& options) {
  std::vector<Elements> outputs;
  if (own == root) outputs.emplace_back(to);
  return reducing(moving(CollectiveKind::reduce, {from}, std::move(outputs), root, options),
                  operation);
}

Call all_reduce_call(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                     const CollectiveOptions& options) {
  return reducing(moving(CollectiveKind::all_reduce, {from}, {to}, 0, options), operation);
}

Call all_reduce_in_place_call(const Incoming& all, const ReduceOperation& operation,
                              const CollectiveOptions& options) {
  return in_place(reducing(moving(CollectiveKind::all_reduce, {}, {all}, 0, options), operation));
}

Call reduce_scatter_call(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                         const CollectiveOptions& options) {
  return reducing(moving(CollectiveKind::reduce_scatter, {from}, {to}, 0, options), operation);
}

Call reduce_scatter_counts_call(const Outgoing& from, const Incoming& to,
                                std::span<const std::int64_t> counts,
                                const ReduceOperation& operation,
                                const CollectiveOptions& options) {
  Call call = reducing(moving(CollectiveKind::reduce_scatter, {from}, {to}, 0, options), operation);
  require(!counts.empty(), "reduce_scatter: no counts");
  call.counts.assign(counts.begin(), counts.end());
  return call;
}

Call scan_call(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
               const CollectiveOptions& options) {
  return reducing(moving(CollectiveKind::scan, {from}, {to}, 0, options), operation);
}

Call scan_in_place_call(const Incoming& all, const ReduceOperation& operation,
                        const CollectiveOptions& options) {
  return in_place(reducing(moving(CollectiveKind::scan, {}, {all}, 0, options), operation));
}

Call exclusive_scan_call(const Outgoing& from, const Incoming& to, const ReduceOperation& operation,
                         const CollectiveOptions& options) {
  return reducing(moving(CollectiveKind::exclusive_scan, {from}, {to}, 0, options), operation);
}

}  // namespace heddle::collectives
