#pragma once

#include <filesystem>
#include <string>

#include "node-runtime/trace/node_trace.hpp"

/// The trace of one node on disk. All little-endian:
///
///   file    "HEDDLETR", u32 format (2), u32 bytes of a record (64), then chunks
///   chunk   u32 type, u32 thread, u64 bytes, u64 checksum (file_format.hpp), payload
///   text    u32 bytes, the bytes
///   NODE    i32 node, i32 nodes; the first chunk
///   META    text, JSON; the last one counts
///   CLCK    u32 count, count * (i64 local_ns, i64 offset_ns)
///   NAME    u32 count, count * text
///   MATR    u32 count, count * (i32 matrix, i32 tile rows, i32 tile columns, text name); the last
///           of a number counts
///   THRD    text name, i32 sort order; threads are counted from 0 as they come
///   RECS    records of `thread`, as in record.hpp; any number of these per thread, in order
///   TOTL    i64 busy_ns, i64 waiting_ns, u64 tasks, u64 dropped: of `thread`; the last one counts
///   END     nothing; the last chunk, without it the file is not complete
///
/// Names and threads precede the records that refer to them, so a growing file can be read up to
/// its last whole chunk at any time. Readers skip unknown chunk types and record kinds, which later
/// versions may add; the format number changes only when a reader would misunderstand.
namespace heddle::trace {

/// Writes a trace in memory. The file appears complete or not at all. Throws Error(usage) if it
/// cannot be created or the metadata is not JSON, Error(internal) if writing fails. (A run's trace
/// is streamed: node_stream.hpp.)
void write_node_file(const std::filesystem::path& path, const NodeTrace& trace);

/// Throws Error(usage) with the file, the offset and the reason if it cannot be opened or is not a
/// trace of this format, or is truncated or corrupt.
[[nodiscard]] NodeTrace read_node_file(const std::filesystem::path& path);

/// The readable part of a file.
struct SalvagedTrace {
  NodeTrace trace;
  std::string damage;  ///< what is missing and why; empty if nothing
};

/// As read_node_file for a truncated or damaged file: returns what precedes the damage. Throws
/// Error(usage) if not even the node is known.
[[nodiscard]] SalvagedTrace salvage_node_file(const std::filesystem::path& path);

}  // namespace heddle::trace
