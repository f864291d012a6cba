#include "node-runtime/collectives/schedule/direct.hpp"

#include <utility>

namespace heddle::collectives {
namespace {

DirectPlace input(std::int32_t rank, std::int32_t block = 0) {
  return {Rank{rank}, false, block};
}
DirectPlace output(std::int32_t rank, std::int32_t block = 0) {
  return {Rank{rank}, true, block};
}

/// One place of each of ranks [begin, end).
template <class Place>
std::vector<DirectPlace> of_ranks(std::int32_t begin, std::int32_t end, const Place& place) {
  std::vector<DirectPlace> all;
  for (std::int32_t r = begin; r < end; ++r) all.push_back(place(r));
  return all;
}

}  // namespace

std::vector<DirectJob> direct_jobs(CollectiveKind kind, std::int32_t ranks, Rank root,
                                   bool is_in_place) {
  std::vector<DirectJob> jobs;
  const auto in = [](std::int32_t r) { return input(r); };
  const auto out = [](std::int32_t r) { return output(r); };
  switch (kind) {
    case CollectiveKind::barrier:
      break;
    case CollectiveKind::broadcast: {
      std::vector<DirectPlace> others = of_ranks(0, ranks, out);
      std::erase(others, output(root.value()));
      if (!others.empty()) jobs.push_back({{input(root.value())}, std::move(others)});
      break;
    }
    case CollectiveKind::scatter:
      for (std::int32_t r = 0; r < ranks; ++r) {
        jobs.push_back({{input(root.value(), r)}, {output(r)}});
      }
      break;
    case CollectiveKind::gather:
      for (std::int32_t r = 0; r < ranks; ++r) {
        jobs.push_back({{input(r)}, {output(root.value(), r)}});
      }
      break;
    case CollectiveKind::all_gather:
      for (std::int32_t r = 0; r < ranks; ++r) {
        const DirectPlace from = is_in_place ? output(r, r) : input(r);
        std::vector<DirectPlace> to =
            of_ranks(0, ranks, [r](std::int32_t other) { return output(other, r); });
        std::erase(to, from);
        if (!to.empty()) jobs.push_back({{from}, std::move(to)});
      }
      break;
    case CollectiveKind::all_to_all:
      for (std::int32_t from = 0; from < ranks; ++from) {
        for (std::int32_t to = 0; to < ranks; ++to) {
          jobs.push_back({{input(from, to)}, {output(to, from)}});
        }
      }
      break;
    case CollectiveKind::reduce:
      jobs.push_back({of_ranks(0, ranks, in), {output(root.value())}});
      break;
    case CollectiveKind::all_reduce:
      jobs.push_back({of_ranks(0, ranks, in), of_ranks(0, ranks, out)});
      break;
    case CollectiveKind::reduce_scatter:
      for (std::int32_t r = 0; r < ranks; ++r) {
        jobs.push_back(
            {of_ranks(0, ranks, [r](std::int32_t other) { return input(other, r); }), {output(r)}});
      }
      break;
    case CollectiveKind::scan:
      for (std::int32_t r = 0; r < ranks; ++r) {
        jobs.push_back({of_ranks(0, r + 1, in), {output(r)}});
      }
      break;
    case CollectiveKind::exclusive_scan:
      for (std::int32_t r = 1; r < ranks; ++r) jobs.push_back({of_ranks(0, r, in), {output(r)}});
      break;
  }
  return jobs;
}

}  // namespace heddle::collectives
