#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/page/byte_writer.hpp"
#include "apps/page/items.hpp"
#include "replay/idleness.hpp"
#include "replay/run.hpp"

/// What a run's page has of it, as columns of numbers: first all values of one kind, then all of
/// the next, so that what is alike stands together when it is compressed. Times are nanoseconds,
/// from `origin_ns` on. assets/decode.js reads them.
namespace heddle::page {

/// Items of each thread of the run, a number per thread. Of each item: start (signed, behind the
/// end of the one before it on its thread), duration, kernel, count, stream. Of each with a count
/// above 1: how long of its duration it was not busy.
[[nodiscard]] ByteWriter tasks_section(const replay::RunTrace& run, std::span<const Item> items,
                                       std::int64_t origin_ns);

/// For each task: job + 1, matrix + 1; tile, order and priority as signed differences from the task
/// before it on its thread; then a fine task's number and the number of the one that it waited for
/// last, 0 for other tasks. For items of one task each.
[[nodiscard]] ByteWriter details_section(const replay::RunTrace& run, std::span<const Item> items);

/// For each task: how many accesses; fine tasks have those of the divided one, the first ones what
/// it reads, the last one what it writes. For each access: what it is (Known), what that leaves
/// open of its matrix + 1, row and column, and its version. A row or column is signed, less that
/// of the same access of the last task of its kernel on its thread; a column less how far the main
/// output's version has come since, too. The version of the first access counts from that of this
/// last task, others from the access before.
[[nodiscard]] ByteWriter accesses_section(const replay::RunTrace& run, std::span<const Item> items);

/// Parts of each thread of the run with a cause other than `runtime` (which has the rest), a number
/// per thread. Of each: start (behind the end of the one before it on its thread), duration, cause.
/// Leaves out those that are shorter than `shortest_ns`.
[[nodiscard]] ByteWriter idle_section(const replay::RunTrace& run,
                                      std::span<const replay::IdlePart> parts,
                                      std::int64_t origin_ns, std::int64_t shortest_ns);

/// Messages: their number. Of each: start (signed, behind that of the one before it), duration,
/// from, to, job + 1, matrix + 1, tile, version + 1, path, bytes. Then the same of copies with
/// node, from, to, reason instead of from, to, path.
[[nodiscard]] ByteWriter transfers_section(const replay::RunTrace& run, std::int64_t origin_ns);

/// How an access is told from what is known already: mode, matrix, row, column in 2, 1, 2 and 2
/// bits, from the lowest on.
enum class Known : std::uint8_t {
  from_output,        ///< the main output's row, or column
  from_output_other,  ///< its column for a row, its row for a column
  from_access,        ///< that of the access before it
  open                ///< stands in a column of the section
};

}  // namespace heddle::page
