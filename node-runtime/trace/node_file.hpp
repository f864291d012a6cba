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
/// Whatever records name stands before them, so that a file that grows with its run can be read up
/// to its last whole chunk at any time. Chunks of other types and records of other kinds may come
/// with later versions of heddle, and are passed over; the format number is raised only by a change
/// that a reader would misunderstand.
namespace heddle::trace {

/// Writes a trace that is in memory. The file appears complete or not at all. Throws Error(usage)
/// when it cannot be made or the metadata is no JSON, Error(internal) when writing fails. (That of
/// a run is written as the run goes: node_stream.hpp.)
void write_node_file(const std::filesystem::path& path, const NodeTrace& trace);

/// Throws Error(usage) that names the file, the place in it and the reason when it cannot be
/// opened, is no trace, is of another format, is truncated or corrupt.
[[nodiscard]] NodeTrace read_node_file(const std::filesystem::path& path);

/// What could be read of a file.
struct SalvagedTrace {
  NodeTrace trace;
  std::string damage;  ///< what could not, and why; empty where nothing is missing
};

/// As read_node_file, of a file that may be cut or damaged: what is before the damage. Throws
/// Error(usage) when that does not even say which node the file is of.
[[nodiscard]] SalvagedTrace salvage_node_file(const std::filesystem::path& path);

}  // namespace heddle::trace
